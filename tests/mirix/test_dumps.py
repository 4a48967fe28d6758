"""`backup` and `restore` with real servers and programs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from mirix.embedded.server import binaries
from tests.mirix.states import ASK, LAST_TWO, LIGHT, State, opened
from tests.redis import redis_server

pytestmark = pytest.mark.processes

# Every table with its number of rows and a digest of them, and the shape of the schema but for its spelling.
CONTENTS = """
def ask():
    folder = server(Path(os.environ["MIRIX_VAR_DIR"])).socket_dir()
    with psycopg.connect(host=str(folder), user="postgres", dbname="mirix") as connection:
        def rows(sql):
            return connection.execute(sql).fetchall()
        tables = rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        digest = "SELECT count(*), md5(string_agg(t::text, '' ORDER BY t::text)) FROM {} t"
        return repr(sorted((name, rows(digest.format(name))) for name, in tables)) + repr(rows(SHAPE))
"""
SHAPE = r"""
    SELECT regexp_replace(line, '::[a-z ]+(\[\])?|[()]', '', 'g') FROM (
        SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT table_name || column_name || data_type || coalesce(column_default, '')
        FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT sequencename || last_value FROM pg_sequences
    ) AS all_of_it (line) ORDER BY 1
"""


@pytest.fixture
def filled(place: Path, filled_cluster: State) -> Iterator[State]:
    """A database in which something is, and which somebody uses."""
    filled_cluster.copy_to(place / "var")
    with opened(place / "var") as state:
        state.hold()
        yield state


@pytest.fixture
def backup(filled: State, place: Path) -> Callable[[], Path]:
    def make() -> Path:
        path = place / "kept.dump"
        done = filled.manage("backup", str(path), "--json")
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["file"] == str(path)
        assert told["bytes"] == path.stat().st_size > 10_000
        assert told["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert path.stat().st_mode & 0o777 == 0o600
        return path

    return make


def contents(state: State) -> str:
    return state.ask(code=f"{LIGHT}\nSHAPE = {SHAPE!r}\n{CONTENTS}")


def stop(state: State) -> None:
    """End whoever holds the database; the next one starts it again."""
    for process in state.started:
        if process.poll() is None:
            process.stdin.close()
            process.wait(60)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line.removeprefix("CommandError: ")


def test_what_was_there_comes_back_as_it_was(filled: State, backup, place: Path):
    before = contents(filled)
    assert "skills_skillrevision" in before
    path = backup()
    filled.ask("UPDATE conversations_conversationmessage SET content = 'changed'")
    filled.ask("CREATE TABLE later (id integer)")
    filled.ask("CREATE TYPE mood AS ENUM ('glad')")
    filled.ask("UPDATE tenants_organization SET name = 'changed'")
    stop(filled)

    done = filled.manage("restore", str(path), "--replace", "--no-input", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told | {"seconds": 0} == {
        "file": str(path),
        "seconds": 0,
        "unapplied_migrations": [],
        "cache_emptied": True,
    }
    assert contents(filled) == before
    assert filled.ask("SELECT count(*) FROM pg_type WHERE typname = 'mood'") == "0"
    assert filled.manage("check").returncode == 0
    assert filled.manage("create_organization", "next").returncode == 0


def test_a_new_machine_takes_it_up(filled: State, backup, new_state_beside: State):
    path = backup()
    before = contents(filled)
    done = new_state_beside.manage("restore", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"Restored {path}.",
        "What was erased after this backup was made is back: erase it again before you serve.",
    ]
    assert contents(new_state_beside) == before
    found = new_state_beside.manage("organizations", "--json")
    assert "demo" in found.stdout


def test_nothing_is_lost_by_a_mistake(filled: State, backup, place: Path):
    path = backup()
    kept = path.read_bytes()
    assert refusal(filled.manage("backup", str(path))) == f"{path} exists already."
    assert path.read_bytes() == kept
    assert refusal(filled.manage("backup", "/nowhere/x.dump")).startswith(
        "/nowhere/x.dump cannot be written: "
    )

    assert refusal(filled.manage("restore", str(path))) == (
        "The database mirix is not empty. --replace gives up what it holds."
    )
    assert refusal(filled.manage("restore", str(path), "--replace")) == (
        "Nobody is there to be asked: say --no-input."
    )
    assert refusal(filled.manage("restore", str(place / "none"))) == f"There is no file {place / 'none'}."
    filled.hold(ASK)
    assert refusal(filled.manage("restore", str(path), "--replace", "--no-input")) == (
        "Somebody else uses the database (connections: 1). Stop serve, web servers and workers first."
    )
    assert filled.ask("SELECT count(*) FROM skills_skill") != "0"


def test_a_file_that_is_broken_changes_nothing(filled: State, backup, place: Path):
    path = backup()
    stop(filled)
    before = contents(filled)
    whole = path.read_bytes()
    broken = place / "broken.dump"
    for content in (
        b"",
        b"hello",
        whole[: len(whole) // 2],
        whole[:-200],
        whole[:5000] + b"x" * 5000 + whole[10000:],
    ):
        broken.write_bytes(content)
        told = refusal(filled.manage("restore", str(broken), "--replace", "--no-input"))
        assert told in (f"{broken} is no backup of mirix.", f"{broken} is broken; nothing was changed.")
    assert contents(filled) == before


def test_what_fails_on_the_way_changes_nothing(filled: State, backup):
    path = backup()
    filled.ask("CREATE SCHEMA beside")
    filled.ask("CREATE VIEW beside.mine AS SELECT 1 AS a")
    filled.ask(
        "CREATE FUNCTION beside.refuse() RETURNS event_trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'the disk is full'; END $$"
    )
    filled.ask(
        "CREATE EVENT TRIGGER late ON ddl_command_end WHEN TAG IN ('CREATE INDEX') "
        "EXECUTE FUNCTION beside.refuse()"
    )
    before = contents(filled)
    told = refusal(filled.manage("restore", str(path), "--replace", "--no-input"))
    assert told.startswith(f"{path} was not restored, nothing was changed: ")
    assert told.endswith("the disk is full")
    assert contents(filled) == before


def test_another_database_s_dump_is_refused(filled: State, place: Path):
    filled.ask("CREATE TABLE only_this (id integer)")
    folder = filled.server.socket_dir()
    path = place / "other.dump"
    command = [binaries() / "pg_dump", "-Fc", "-t", "only_this", "-h", folder, "-U", "postgres", "mirix"]
    path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    assert refusal(filled.manage("restore", str(path), "--replace", "--no-input")) == (
        f"{path} is no backup of mirix."
    )


def test_a_backup_of_a_later_release_is_refused_and_of_an_earlier_one_migrated(
    filled: State, backup, new_state_beside: State, cluster_behind: State, place: Path
):
    filled.ask("INSERT INTO django_migrations (app, name, applied) VALUES ('skills', '9999_later', now())")
    path = backup()
    stop(filled)
    assert refusal(filled.manage("restore", str(path), "--replace", "--no-input")) == (
        f"{path} is of a later release than this one, which knows nothing of skills.9999_later. "
        "Install that release first."
    )

    old = place / "old.dump"
    cluster_behind.copy_to(new_state_beside.var_dir)
    assert new_state_beside.manage("backup", str(old)).returncode == 0
    done = filled.manage("restore", str(old), "--replace", "--no-input")
    assert done.returncode == 0, done.stderr
    assert "Run ./run migrate: migrations that the backup lacks: 1." in done.stdout
    assert filled.manage("migrate", "-v0").returncode == 0
    assert filled.ask(f"SELECT count(*) FROM django_migrations WHERE name = '{LAST_TWO[1]}'") == "1"


def test_a_server_of_its_own_is_served_by_the_programs_on_the_path(filled: State, place: Path):
    folder = quote(str(filled.server.socket_dir()), safe="")
    url = f"postgres://postgres:a%20secret@/mirix?host={folder}"
    path = place / "kept.dump"
    with_programs = {"DATABASE_URL": url, "PATH": f"{binaries()}:{os.environ['PATH']}"}
    done = filled.manage("backup", str(path), env=with_programs)
    assert done.returncode == 0, done.stderr
    filled.ask("CREATE DATABASE empty")
    other = with_programs | {"DATABASE_URL": url.replace("/mirix?", "/empty?")}
    done = filled.manage("restore", str(path), env=other)
    assert done.returncode == 0, done.stderr
    assert "demo" in filled.manage("organizations", "--json", env=other).stdout

    without = with_programs | {"PATH": "/nowhere"}
    assert refusal(filled.manage("backup", str(place / "x"), env=without)) == (
        "pg_dump is not on the PATH: install the client programs of PostgreSQL."
    )
    old = place / "old"
    old.mkdir()
    (old / "pg_dump").write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 13.2'\n")
    (old / "pg_dump").chmod(0o755)
    behind = with_programs | {"PATH": f"{old}:{os.environ['PATH']}"}
    assert refusal(filled.manage("backup", str(place / "x"), env=behind)) == (
        "pg_dump on the PATH is of PostgreSQL 13, and the server is of 18: install postgresql-client-18."
    )
    assert not (place / "x.part").exists()


def test_what_redis_kept_of_the_time_after_is_dropped(filled: State, backup):
    path = backup()
    stop(filled)

    def ask(*words: str) -> list[str]:
        command = ["redis-cli", "-s", socket, "-n", "1", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    with redis_server() as url:
        socket = url.removeprefix("unix://").partition("?")[0]
        for key in ("mirix:search:1:found:x", "somebody:else"):
            ask("SET", key, "stale")
        command = ("restore", str(path), "--replace", "--no-input")
        done = filled.manage(*command, env={"MIRIX_REDIS_URL": url})
        assert done.returncode == 0, done.stderr
        assert ask("KEYS", "*") == ["somebody:else"]
    done = filled.manage(*command, env={"MIRIX_REDIS_URL": url})
    assert "Redis is out of reach: empty it before you serve (keys mirix:*)." in done.stdout


def test_one_without_a_name_lies_in_the_state_directory(filled: State):
    done = filled.manage("backup", "--json")
    path = Path(json.loads(done.stdout)["file"])
    assert path.parent == filled.var_dir / "backups"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.name.startswith("mirix-20")


def test_it_is_one_moment_while_others_write(filled: State, place: Path, new_state_beside: State):
    """Of two tables that change together, the backup never has one without the other."""
    filled.ask("CREATE TABLE pairs (id integer, side text)")
    writer = filled.start(
        "-c",
        "from tests.mirix.states import LIGHT\nexec(LIGHT)\nprint(1, flush=True)\n"
        "for n in range(100000): ask(f\"INSERT INTO pairs VALUES ({n}, 'a'), ({n}, 'b')\")",
    )
    assert writer.stdout.readline()
    path = place / "kept.dump"
    assert filled.manage("backup", str(path)).returncode == 0
    writer.kill()
    assert new_state_beside.manage("restore", str(path)).returncode == 0
    assert new_state_beside.ask("SELECT count(*) % 2 FROM pairs") == "0"
