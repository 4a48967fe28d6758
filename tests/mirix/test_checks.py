"""The start-up guard: nothing touches data in a database that is behind the code."""

from __future__ import annotations

import io
import json
import signal
from typing import Any
from urllib.parse import quote

import pytest
from django.apps import apps
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import CommandError
from django.db import OperationalError, connection

from mirix.checks import (
    OriginalDatabaseError,
    UnappliedMigrationsError,
    refuse_original,
    require_migrations,
    unapplied_migrations,
)
from mirix.commands import DataCommand, MigrationsRequired
from tests.mirix.served import Served
from tests.mirix.states import LAST_TWO, State, wait_until

# migrate is the remedy, quickstart calls it, and worker hands on to the guarded command of Procrastinate;
# dbshell may be needed before.
UNGUARDED = {"dbshell", "migrate", "quickstart", "worker"}


class Greet(DataCommand):
    """A command that is nobody's."""

    def handle(self, *args: Any, **options: Any) -> None:
        self.say("looking …")
        self.answer({"greeting": "grüß dich"}, "Grüß dich.")


@pytest.fixture
def behind(db) -> list[str]:
    """The database lost the last migration of the skills app; its name."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(name) FROM django_migrations WHERE app = 'skills'")
        (name,) = cursor.fetchone()
        cursor.execute("DELETE FROM django_migrations WHERE app = 'skills' AND name = %s", [name])
    return [f"skills.{name}"]


class TestUnappliedMigrations:
    def test_are_none_when_the_database_is_up_to_date(self, db):
        assert unapplied_migrations() == []
        require_migrations()

    def test_are_listed_with_the_command_to_run(self, behind: list[str]):
        assert unapplied_migrations() == behind
        with pytest.raises(UnappliedMigrationsError) as refusal:
            require_migrations()
        assert refusal.value.names == behind
        assert str(refusal.value) == (
            f"The database is behind the code by 1 migration: {behind[0]}. Run ./run migrate first."
        )

    def test_are_counted_by_app_when_they_are_many(self):
        names = [f"auth.{n:04}" for n in range(12)] + ["skills.0001_initial"]
        assert str(UnappliedMigrationsError(names)) == (
            "The database is behind the code by 13 migrations: auth (12), skills (1). "
            "Run ./run migrate first."
        )


class TestDatabaseOfTheOriginal:
    @pytest.fixture
    def visible(self, db):
        """Makes only some empty tables visible to this connection."""

        def make(*tables: str) -> None:
            with connection.cursor() as cursor:
                cursor.execute("CREATE SCHEMA elsewhere; SET LOCAL search_path TO elsewhere")
                for table in tables:
                    cursor.execute(f"CREATE TABLE {table} (id varchar)")

        return make

    @pytest.mark.parametrize("memories", ["agents", "procedural_memory", "procedural_memory_items"])
    def test_is_refused_and_given_up(self, visible, memories: str, monkeypatch):
        visible("organizations", "users", memories)
        closed: list[bool] = []
        monkeypatch.setattr(connection, "close", lambda: closed.append(True))
        with pytest.raises(OriginalDatabaseError, match=r"import_mirix --from"):
            refuse_original(connection)
        assert closed == [True]

    @pytest.mark.parametrize(
        "tables",
        [
            [],
            ["organizations", "users"],
            ["users", "agents"],
            ["organizations", "users", "agents", "tenants_organization"],
        ],
    )
    def test_is_not_any_other(self, visible, tables: list[str]):
        visible(*tables)
        refuse_original(connection)

    def test_is_not_opened_by_a_shell(self, db, monkeypatch):
        def refuse() -> None:
            raise OriginalDatabaseError("acme")

        opened: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(connection, "ensure_connection", refuse)
            patch.setattr(connection.client, "runshell", opened.append)
            with pytest.raises(OriginalDatabaseError):
                call_command("dbshell")
        assert opened == []


class TestCommands:
    def test_refuse_before_they_do_anything(self, behind: list[str]):
        out = io.StringIO()
        with pytest.raises(CommandError, match=behind[0]):
            call_command(Greet(), stdout=out)
        assert out.getvalue() == ""

    def test_of_procrastinate_refuse_too(self, behind: list[str]):
        with pytest.raises(CommandError, match=behind[0]):
            call_command("worker")

    def test_are_all_guarded(self):
        rooms = {"mirix", "conversations", "skills"}
        ours = {config.name for config in apps.get_app_configs() if config.name.split(".")[0] in rooms}
        commands = {
            name: load_command_class(app, name) for name, app in get_commands().items() if app in ours
        }
        assert "serve" in commands
        unguarded = {
            name for name, command in commands.items() if not isinstance(command, MigrationsRequired)
        }
        assert unguarded <= UNGUARDED

    def test_answer_in_text(self, db):
        out = io.StringIO()
        call_command(Greet(), stdout=out)
        assert out.getvalue() == "looking …\nGrüß dich.\n"

    def test_answer_in_json_and_keep_everything_else_off_standard_output(self, db):
        out, err = io.StringIO(), io.StringIO()
        call_command(Greet(), json=True, stdout=out, stderr=err)
        assert json.loads(out.getvalue()) == {"greeting": "grüß dich"}
        assert err.getvalue() == "looking …\n"

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (CommandError("No “x\u202e”."), "No “x\u202e”."),
            (OperationalError("gone\nfor good"), "Database error: gone"),
        ],
    )
    def test_answer_in_json_that_they_failed(self, db, error: Exception, told: str):
        class Fail(Greet):
            has_answered = False

            def handle(self, *args: Any, **options: Any) -> None:
                if self.has_answered:
                    super().handle(*args, **options)
                raise error

        out = io.StringIO()
        with pytest.raises(type(error)):
            call_command(Fail(), json=True, stdout=out)
        assert json.loads(out.getvalue()) == {"error": told}
        assert "\u202e" not in out.getvalue()

        out = io.StringIO()
        with pytest.raises(type(error)):
            call_command(Fail(), stdout=out)
        assert out.getvalue() == ""

        out, Fail.has_answered = io.StringIO(), True
        with pytest.raises(type(error)):
            call_command(Fail(), json=True, stdout=out, stderr=io.StringIO())
        assert json.loads(out.getvalue()) == {"greeting": "grüß dich"}


@pytest.mark.processes
class TestProcesses:
    def test_of_manage_py_end_with_one_line(self, state_behind: State):
        state_behind.hold()
        told = (
            "CommandError: The database is behind the code by 1 migration: "
            f"skills.{LAST_TWO[1]}. Run ./run migrate first.\n"
        )
        for command in (
            ["worker"],
            ["procrastinate", "worker"],
            ["serve", "--port", "0"],
            ["create_organization", "never"],
            ["import_skills", ".", "--organization", "never", "--user", "never"],
            ["seal_sessions"],
            ["auto_dream", "--organization", "never", "--user", "never"],
            ["seal_sessions", "--json"],
            ["search_index", "rebuild"],
        ):
            done = state_behind.manage(*command)
            assert (done.returncode, done.stderr) == (1, told), command
            if "--json" in command:
                assert json.loads(done.stdout) == {"error": told.removeprefix("CommandError: ").rstrip()}
            else:
                assert done.stdout == "", command
        assert state_behind.ask("SELECT count(*) FROM tenants_organization") == "0"
        assert state_behind.ask("SELECT count(*) FROM procrastinate_workers") == "0"

    def test_of_the_web_end_with_one_line_and_for_good(self, state_behind: State):
        done = state_behind.run(
            "-m", "gunicorn", "mirix.wsgi", "--bind", "127.0.0.1:0", "--no-control-socket"
        )
        assert done.returncode == 4
        told = [line for line in done.stderr.splitlines() if line.startswith("mirix does not start: ")]
        assert len(told) == 1
        assert "Run ./run migrate first." in told[0]
        assert "Traceback" not in done.stderr

    def test_touch_no_database_of_the_original(self, migrated_state: State):
        migrated_state.hold()
        migrated_state.ask("CREATE SCHEMA original")
        for table in ("organizations", "users", "agents"):
            migrated_state.ask(f"CREATE TABLE original.{table} (id varchar)")
        folder = quote(str(migrated_state.server.socket_dir()), safe="")
        url = f"postgres://postgres@/mirix?host={folder}&options=-csearch_path%3Doriginal"
        for command in (
            ["migrate"],
            ["quickstart", "--no-serve"],
            ["flush", "--no-input"],
            ["dbshell", "--", "-c", "DROP TABLE agents"],
            ["worker"],
            ["procrastinate", "worker"],
            ["serve", "--port", "0"],
            ["create_organization", "never"],
        ):
            done = migrated_state.manage(*command, env={"DATABASE_URL": url})
            (line,) = done.stderr.splitlines()
            assert done.returncode == 1
            assert line.startswith("Database error: “mirix” is a database of the original MIRIX")
            assert "import_mirix --from" in line
        web = ("-m", "gunicorn", "mirix.wsgi", "--bind", "127.0.0.1:0", "--no-control-socket")
        done = migrated_state.run(*web, env={"DATABASE_URL": url})
        assert done.returncode == 4
        assert "mirix does not start: “mirix” is a database of the original MIRIX" in done.stderr
        assert migrated_state.ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'original'") == "3"

    def test_work_again_after_migrate(self, state_behind: State):
        state_behind.hold()
        done = state_behind.manage("migrate")
        assert (done.returncode, f"Applying skills.{LAST_TWO[1]}... OK" in done.stdout) == (0, True)
        assert state_behind.manage("create_organization", "now").returncode == 0
        worker = state_behind.start("manage.py", "procrastinate", "worker")
        wait_until(lambda: state_behind.ask("SELECT count(*) FROM procrastinate_workers") == "1")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
        assert Served(state_behind).get("/health")[0] == 200

    def test_end_with_one_line_when_the_database_is_out_of_reach(self, migrated_state: State):
        url = "postgres://nobody@127.0.0.1:1/mirix"
        for command in (["migrate"], ["worker"], ["create_organization", "never"]):
            done = migrated_state.manage(*command, env={"DATABASE_URL": url})
            assert done.returncode == 1
            (line,) = done.stderr.splitlines()
            assert line.startswith("Database error: ")
            assert "Connection refused" in line

    def test_end_quietly_when_the_reader_leaves(self, migrated_state: State):
        command = migrated_state.start("manage.py", "showmigrations")
        assert command.stdout.readline()
        command.stdout.close()
        assert command.wait() in (0, 141)
        assert command.stderr.read() == ""
