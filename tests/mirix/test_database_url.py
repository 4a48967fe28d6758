"""Start-up on a server named by `DATABASE_URL`, and the doors into the embedded one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.mirix.states import ASK, State, opened

pytestmark = pytest.mark.processes


def url(state: State, database: str = "mirix") -> str:
    return f"postgres://postgres@/{database}?host={quote(str(state.server.socket_dir()))}"


@pytest.fixture
def server_state(state: State):
    """A state whose server this process holds, to be addressed by a URL."""
    state.server.socket_dir()
    yield state
    state.server.leave()


def test_that_server_is_used_and_no_other_is_started(server_state: State, place: Path):
    with opened(place / "other") as other:
        env = {"DATABASE_URL": url(server_state)}
        directory = server_state.var_dir / "postgres"
        assert other.ask("SELECT current_setting('data_directory')", code=ASK, env=env) == str(directory)
        done = other.manage("migrate", "-v0", env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert other.manage("create_organization", "there", env=env).returncode == 0
        assert {path.name for path in other.var_dir.iterdir()} == {"secret_key"}
    assert server_state.ask("SELECT name FROM tenants_organization") == "there"


def test_a_database_that_is_not_there_is_one_line(server_state: State, place: Path):
    with opened(place / "other") as other:
        done = other.manage("migrate", env={"DATABASE_URL": url(server_state, "missing")})
        assert done.returncode == 1
        assert done.stderr.startswith("Database error: ")
        assert 'database "missing" does not exist' in done.stderr


def test_a_url_of_another_engine_is_refused(new_state: State):
    done = new_state.manage("check", env={"DATABASE_URL": "sqlite:///mirix.db"})
    assert done.returncode == 1
    assert "PostgreSQL is the only database engine" in done.stderr


def test_dbshell_opens_psql_of_the_wheel(state: State):
    done = state.manage(
        "dbshell", "--", "--no-psqlrc", "-Atc", "SELECT current_database(), 6 * 7", env={"PATH": ""}
    )
    assert (done.returncode, done.stdout) == (0, "mirix|42\n")


def test_procrastinate_gets_parameters_of_a_server_that_runs(state: State):
    code = """
import django
django.setup()
import psycopg
from procrastinate.contrib.django.utils import connector_params
with psycopg.connect(**connector_params()) as connection:
    print(connection.execute("SELECT current_database()").fetchone()[0])
"""
    done = state.run("-c", code)
    assert (done.returncode, done.stdout) == (0, "mirix\n"), done.stderr
