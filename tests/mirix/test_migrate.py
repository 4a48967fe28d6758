"""`migrate`, from several processes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mirix.states import opened

pytestmark = pytest.mark.processes


def test_two_at_once_on_an_empty_database_both_succeed(tmp_path: Path):
    with opened(tmp_path / "var") as state:
        started = [state.start("manage.py", "migrate", "-v0") for _ in range(3)]
        outcomes = [(process.communicate(), process.returncode) for process in started]

        assert [status for _, status in outcomes] == [0, 0, 0], outcomes
        assert state.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"
