"""The embedded server under real processes: who starts it, who stops it, and what a crash leaves behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from mirix.embedded import server as server_module
from mirix.embedded.server import EmbeddedServerError, Server
from tests.mirix.states import ASK, LIGHT, SOAK, State, end, kill, opened, wait_until

pytestmark = pytest.mark.processes


class TestLog:
    def test_holds_no_statement_and_no_row_of_what_failed(self, state: State):
        state.hold()
        done = state.run("-c", LIGHT + "\nask(\"SELECT 'the words of a user'::integer\")")
        assert "InvalidTextRepresentation" in done.stderr
        log = (state.var_dir / "postgres.log").read_text()
        assert "database system is ready" in log
        assert "the words of a user" not in log


class TestFirstConnection:
    def test_of_many_threads_at_once_starts_one_server(self, new_state: State):
        with ThreadPoolExecutor(16) as pool:
            folders = list(pool.map(lambda _: new_state.server.socket_dir(), range(16)))
        assert folders == [new_state.var_dir / "postgres"] * 16
        new_state.server.leave()
        assert not new_state.server.running()

    def test_of_many_processes_at_once_starts_one_server(self, new_state: State):
        processes = [
            new_state.start("-c", LIGHT + "\nprint(ask(), flush=True)\nsys.stdin.read()") for _ in range(12)
        ]
        answers = {process.stdout.readline().strip() for process in processes}
        assert len(answers) == 1, [process.stderr.read() for process in processes if process.poll()]
        assert answers.pop().endswith(" mirix")
        assert [end(process) for process in processes] == [0] * 12
        assert not new_state.server.running()

    def test_makes_the_database_anew_when_it_is_missing(self, state: State):
        folder = state.server.socket_dir()
        with psycopg.connect(
            host=str(folder), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute("DROP DATABASE mirix")
        state.server.leave()
        assert state.ask("SELECT current_database()") == "mirix"

    def test_replaces_a_cluster_that_was_made_by_half(self, new_state: State):
        half = new_state.var_dir / "postgres.new"
        half.mkdir(parents=True)
        (half / "PG_VERSION").write_text("18\n")
        assert new_state.ask("SELECT 1") == "1"
        assert not half.exists()


class TestLastProcess:
    def test_stops_the_server_and_the_ones_before_do_not(self, state: State):
        first, second = state.hold(), state.hold()
        assert end(first) == 0
        assert state.server.running()
        assert end(second) == 0
        assert not state.server.running()

    def test_is_told_from_a_killed_one(self, state: State):
        first, second = state.hold(), state.hold()
        kill(first)
        assert end(second) == 0
        assert not state.server.running()

    def test_may_be_a_command_that_sigterm_ends(self, migrated_state: State):
        worker = migrated_state.start("manage.py", "worker", stderr=subprocess.STDOUT)
        wait_until(migrated_state.server.running)
        assert "Launching a worker" in worker.stdout.readline()
        worker.terminate()
        worker.wait()
        assert not migrated_state.server.running()

    def test_may_be_a_fork_that_outlives_its_parent(self, state: State):
        code = LIGHT + (
            "\nask()\nif os.fork():\n    sys.exit()\nsys.stdin.read()\nprint(ask('SELECT 7'), flush=True)\n"
        )
        parent = state.start("-c", code)
        parent.wait()
        assert state.server.running()
        parent.stdin.close()
        assert parent.stdout.readline() == "7\n"
        wait_until(lambda: not state.server.running())

    @pytest.mark.soak
    def test_and_first_process_may_race(self, state: State):
        count = 99 if SOAK else 12
        with ThreadPoolExecutor(9) as pool:
            answers = list(pool.map(lambda _: state.ask("SELECT 1"), range(count)))
        assert answers == ["1"] * count
        assert not state.server.running()


class TestCrash:
    def test_of_the_server_is_healed_by_the_next_connection(self, state: State):
        code = f"""{ASK}
import sys
ask("CREATE TABLE kept AS SELECT 5 AS n")
print("connected", flush=True)
sys.stdin.readline()
connection.close()
print(ask("SELECT n FROM kept"), flush=True)
"""
        process = state.start("-c", code)
        assert process.stdout.readline() == "connected\n"
        state.postmaster.kill()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "5\n"

    def test_of_everything_loses_nothing_and_blocks_nothing(self, state: State):
        holders = [state.hold() for _ in range(3)]
        state.ask("CREATE TABLE kept AS SELECT 5 AS n", code=ASK)
        state.kill_everything()
        assert all(holder.returncode == -signal.SIGKILL for holder in holders)
        assert state.ask("SELECT n FROM kept") == "5"
        assert not state.server.running()

    @pytest.mark.parametrize("kind", ["living stranger", "zombie", "empty file"])
    def test_may_leave_a_pid_file_that_misleads(self, state: State, kind: str):
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        stranger = {"living stranger": str(os.getpid()), "zombie": str(zombie.pid), "empty file": ""}[kind]
        state.hold()
        pid_file = state.var_dir / "postgres" / "postmaster.pid"
        lock_file = state.var_dir / "postgres" / ".s.PGSQL.5432.lock"
        left = [(file, file.read_text()) for file in (pid_file, lock_file)]
        state.kill_everything()
        for file, text in left:
            file.write_text(stranger + text[text.index("\n") :] if stranger else "")
        assert state.ask("SELECT 1") == "1"
        zombie.wait()

    def test_leaves_a_copy_of_the_checkout_with_a_server_of_its_own(self, state: State, place: Path):
        original = state.hold()
        state.copy_to(place / "copy")
        with opened(place / "copy") as copy:
            assert copy.ask() != state.ask()
        assert end(original) == 0


class TestPath:
    @pytest.mark.parametrize(
        "name", ["a folder with spaces", "Ablage für 北京", "one,two", "it's $HOME", "long" * 30]
    )
    def test_may_be_odd_or_long(self, place: Path, empty_cluster: State, name: str):
        empty_cluster.copy_to(place / name / "var")
        with opened(place / name / "var") as state:
            assert state.ask("SELECT current_setting('data_directory')") == str(state.var_dir / "postgres")
            assert not state.server.running()

    def test_too_long_for_a_socket_leads_to_a_private_folder(self, place: Path, empty_cluster: State):
        empty_cluster.copy_to(place / ("long" * 30) / "var")
        with opened(place / ("long" * 30) / "var") as state:
            holder = state.hold()
            folder = Path(state.ask("SELECT current_setting('unix_socket_directories')"))
            owner = (state.var_dir / "postgres").stat().st_uid
            for private in (folder, folder.parent):
                assert private.stat().st_mode & 0o7777 == 0o700
                assert private.stat().st_uid == owner
            # Another process may have another idea of the temporary folder; the server runs where it runs.
            assert state.ask("SELECT 1", env={"TMPDIR": str(place)}) == "1"
            assert end(holder) == 0

    def test_of_a_new_cluster_may_be_odd_too(self, place: Path):
        with opened(place / "neue Ablage für 北京" / "var") as state:
            assert state.ask("SELECT 1") == "1"

    def test_private_folder_of_somebody_else_is_refused(self, place: Path, empty_cluster: State):
        empty_cluster.copy_to(place / ("long" * 30) / "var")
        with opened(place / ("long" * 30) / "var") as state:
            temporary = place / "tmp"
            temporary.mkdir()
            owner = (state.var_dir / "postgres").stat().st_uid
            (temporary / f"mirix-{owner}").mkdir(mode=0o777)
            done = state.run("-c", LIGHT + "\nask()", env={"TMPDIR": str(temporary)})
            assert done.returncode == 1
            assert "is not a private folder" in done.stderr.splitlines()[-1]


class TestCluster:
    @pytest.mark.parametrize(
        "variables", [{"LC_ALL": "xx_YY.UTF-8"}, {"LANG": "tr_TR.UTF-8", "LC_CTYPE": "C"}]
    )
    def test_is_the_same_whatever_the_locale_of_its_maker(self, new_state: State, variables: dict[str, str]):
        assert new_state.ask("SELECT lower('ÄÖÉ I')", env=variables) == "äöé i"
        locale = new_state.ask(
            "SELECT concat_ws(' ', datlocprovider, datlocale, pg_encoding_to_char(encoding)) "
            "FROM pg_database WHERE datname = 'mirix'"
        )
        assert locale == "b C.UTF-8 UTF8"

    def test_is_reached_by_its_owner_alone(self, state: State):
        state.hold()
        assert (state.var_dir / "postgres").stat().st_mode & 0o777 == 0o700
        socket_file = state.var_dir / "postgres" / ".s.PGSQL.5432"
        assert socket_file.stat().st_mode & 0o777 == 0o700
        assert state.ask("SELECT current_setting('listen_addresses')") == ""

    def test_ignores_the_variables_of_another_server(self, state: State):
        elsewhere = {
            "PGHOST": "db.example.org",
            "PGPORT": "1",
            "PGUSER": "x",
            "PGDATABASE": "y",
            "PGDATA": "/z",
        }
        assert state.ask("SELECT current_database()", code=ASK, env=elsewhere) == "mirix"


class TestRefusal:
    def test_of_postgresql_is_one_line_with_its_reason(self, state: State):
        (state.var_dir / "postgres" / "PG_VERSION").write_text("9.6\n")
        done = state.manage("showmigrations")
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(
            r"Database error: PostgreSQL did not start: .*FATAL: .*\(see .*postgres\.log\)\n", done.stderr
        )

    def test_of_the_state_directory_is_one_line(self, place: Path):
        (place / "var").write_text("a file where the folder should be")
        with pytest.raises(
            EmbeddedServerError, match=r"embedded PostgreSQL cannot be used: .*Not a directory"
        ):
            Server(place / "var").socket_dir()

    def test_without_the_wheel_names_the_remedy(self, monkeypatch: pytest.MonkeyPatch, place: Path):
        monkeypatch.setattr(server_module, "find_spec", lambda name: None)
        with pytest.raises(
            EmbeddedServerError, match="Set DATABASE_URL to a PostgreSQL server with pgvector"
        ):
            Server(place / "var").socket_dir()
