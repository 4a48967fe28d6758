"""As whom state is made and the server runs: root in somebody's checkout, root's own, a plain user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirix.embedded.account import SYSTEM_USER, server_account
from mirix.embedded.server import binaries
from mirix.ownership import Account, state_account
from tests.mirix.states import ASK, LIGHT, State, end, opened

AS_ROOT = os.geteuid() == 0
PLAIN = pwd.getpwnam("nobody") if AS_ROOT else pwd.getpwuid(os.geteuid())
# A plain user cannot become another one: these say something only where the tests run as root.
ROOT_CASES = [pytest.param(id="root")] if AS_ROOT else []


def owners(state: State) -> set[str]:
    paths = [state.var_dir, *state.var_dir.iterdir()]
    return {pwd.getpwuid(path.stat().st_uid).pw_name for path in paths}


# Becomes a plain user once everything is imported: root's Python may lie where nobody else gets.
AS_PLAIN_USER = LIGHT + (
    f"os.setgroups([]); os.setgid({PLAIN.pw_gid}); os.setuid({PLAIN.pw_uid})\n" if AS_ROOT else ""
)


@pytest.fixture
def plain_state(place: Path) -> Iterator[State]:
    """A new state directory in a folder of a plain user, who may run the server's programs."""
    if AS_ROOT:
        os.chown(place, PLAIN.pw_uid, PLAIN.pw_gid)
        (place / "var").mkdir()
        os.chown(place / "var", PLAIN.pw_uid, PLAIN.pw_gid)
        server_account(place / "var", [binaries() / "postgres"])
    with opened(place / "var") as state:
        yield state


def test_a_plain_user_owns_what_it_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    monkeypatch.setattr(os, "getegid", lambda: 5678)
    assert state_account(tmp_path) == Account(1234, 5678)


@pytest.mark.processes
class TestPlainUser:
    def test_runs_the_server_as_itself(self, plain_state: State):
        holder = plain_state.hold(AS_PLAIN_USER)
        assert plain_state.postmaster.username() == PLAIN.pw_name
        assert owners(plain_state) == {PLAIN.pw_name}
        assert end(holder) == 0
        assert not plain_state.server.running()


@pytest.mark.processes
@pytest.mark.parametrize((), ROOT_CASES)
class TestRoot:
    def test_in_a_plain_users_state_does_not_lock_the_user_out(self, plain_state: State):
        holder = plain_state.hold(ASK)
        assert plain_state.postmaster.username() == PLAIN.pw_name
        assert owners(plain_state) == {PLAIN.pw_name}
        assert plain_state.ask("SELECT 1", code=AS_PLAIN_USER) == "1"
        assert end(holder) == 0
        assert plain_state.ask("SELECT 1", code=AS_PLAIN_USER) == "1"

    def test_alone_has_a_system_user_run_the_server(self, new_state: State):
        holder = new_state.hold(ASK)
        assert new_state.postmaster.username() == SYSTEM_USER
        assert end(holder) == 0
        assert not new_state.server.running()

    def test_opens_a_closed_folder_no_further_than_to_pass(self, place: Path):
        place.chmod(0o700)
        with opened(place / "var") as state:
            done = state.run("-c", ASK + "\nprint(ask('SELECT 1'))")
            assert (done.returncode, done.stdout) == (0, "1\n")
            assert f"pass through {place} (o+x)" in done.stderr
            assert place.stat().st_mode & 0o777 == 0o701
