"""Runs in real processes: at once, killed, asleep. Each session is learned from once, whatever happens."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from conversations.models import Session
from mirix.tenants.owners import Owner
from skills.models import AutoDreamRun, DistillationAttempt, SkillExperience
from skills.triggers import request_run
from tests.factories import make_owner, make_session
from tests.processes import SOAK, Process, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

PRELUDE = """
import os, sys, time
from pathlib import Path
from django.core.management import call_command
from django.core.management.base import CommandError
from skills import dream as dreaming, lessons
from skills.evolution.types import EvolutionReport
from tests.skills.scripted import ScriptedDistiller, one_lesson

dreaming.evolve = lambda **_: EvolutionReport()

def distil_by(script):
    dreaming.get_distiller = lambda model="": ScriptedDistiller(script)

def wait_for(path):
    deadline = time.monotonic() + 60
    while not Path(path).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)

def auto_dream(organization, user):
    try:
        options = {"last_n_sessions": 99_999, "wait": PATIENCE}
        call_command("auto_dream", organization=organization, user=user, **options)
    except CommandError as error:
        print(error, file=sys.stderr)
        sys.exit(error.returncode)

def tell_asked():
    os.write(1, b"asked" + os.linesep.encode())  # in one piece: several threads may be asked at once

def slow(turns, first_seq):
    tell_asked()
    wait_for(GO)
    return one_lesson(turns, first_seq)

PATIENCE = 600
distil_by(one_lesson)
"""


def command(owner: Owner, script: str = "", *, go: Path | None = None, **environment: str) -> Process:
    """`auto_dream` in a process of its own, after what the script changes."""
    call = f"auto_dream({owner.organization.name!r}, {owner.end_user.user_id!r})"
    return _process(script, call, go, environment)


def worker(script: str = "", *, go: Path | None = None, **environment: str) -> Process:
    """A worker in a process of its own."""
    return _process(script, "call_command('worker')", go, environment)


def _process(script: str, call: str, go: Path | None, environment: dict[str, str]) -> Process:
    return Process("\n".join([f"GO = {str(go)!r}", PRELUDE, dedent(script), call]), **environment)


def fill(owner: Owner, sessions: int) -> None:
    for number in range(sessions):
        make_session(owner, [{"role": "user", "content": f"No, number {number}."}])


def look_dead() -> None:
    """What a minute of silence does."""
    AutoDreamRun.objects.filter(state="running").update(heartbeat_at=None)


def assert_learned_once(owner: Owner, sessions: int) -> None:
    """The outcome of an undisturbed run: one experience per session, and every session done."""
    quotes = SkillExperience.objects.for_owner(owner).values_list("quote", flat=True)
    assert Counter(quotes) == Counter(f"No, number {number}." for number in range(sessions))
    attempts = DistillationAttempt.objects.for_owner(owner).values_list("session", "verdict")
    assert Counter(verdict for _, verdict in attempts) == {"ok": sessions}
    assert len({session for session, _ in attempts}) == sessions
    states = Session.objects.for_owner(owner).values_list("state", "distilled_through", "attempts")
    assert Counter(states) == {("distilled", 1, 0): sessions}


def test_of_two_commands_at_once_one_runs(tmp_path):
    owner = make_owner()
    fill(owner, 4)

    with command(owner, "distil_by(slow)", go=tmp_path / "go") as first:
        assert first.line() == "asked"
        with command(owner, "PATIENCE = 0") as second:
            status, _, errors = second.end()
        held = AutoDreamRun.objects.get()
        assert (status, errors.strip()) == (1, f"{owner} is busy: {held.pk} (command) is going on.")
        (tmp_path / "go").touch()
        status, _, errors = first.end()
        assert (status, errors) == (0, "")

    assert_learned_once(owner, 4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_told_to_stop_stores_what_is_on_its_way_and_frees_the_owner(tmp_path, number):
    owner = make_owner()
    fill(owner, 4)

    with command(owner, "distil_by(slow)", go=tmp_path / "go", MIRIX_DISTILLER_MAX_CONCURRENCY="2") as first:
        assert (first.line(), first.line()) == ("asked", "asked")
        first.send(number)
        time.sleep(1)
        (tmp_path / "go").touch()
        status, _, errors = first.end()

    assert status == 128 + number
    first_line, *_, last_line = errors.splitlines()
    assert first_line == "Stopping once the sessions on their way are stored; again to stop at once."
    assert last_line == "Interrupted. What was distilled is kept; the same command goes on from there."
    run = AutoDreamRun.objects.get()
    assert (run.state, run.error, run.counts["sessions"]["distilled"]) == (
        "interrupted",
        "Interrupted.",
        2,
    )
    with command(owner, "PATIENCE = 0") as second:
        assert second.end()[0] == 0
    assert_learned_once(owner, 4)


def test_a_second_signal_is_obeyed_at_once(tmp_path):
    owner = make_owner()
    fill(owner, 1)

    with command(owner, "distil_by(slow)", go=tmp_path / "go") as process:
        assert process.line() == "asked"
        process.send(signal.SIGINT)
        time.sleep(1)
        process.send(signal.SIGINT)
        eventually(AutoDreamRun.objects.filter(state="interrupted", error="Interrupted.").exists)
        (tmp_path / "go").touch()
        assert process.end()[0] == 130
    assert SkillExperience.objects.count() == 0


def test_different_owners_run_at_the_same_time(tmp_path):
    """Each waits within its run for the other's: it would never come if they excluded one another."""
    one, other = make_owner(), make_owner()
    fill(one, 2)
    fill(other, 2)
    meet = """
    def meet(turns, first_seq):
        Path({mine!r}).touch()
        wait_for({theirs!r})
        return one_lesson(turns, first_seq)
    distil_by(meet)
    """
    a, b = str(tmp_path / "a"), str(tmp_path / "b")

    with (
        command(one, meet.format(mine=a, theirs=b)) as first,
        command(other, meet.format(mine=b, theirs=a)) as second,
    ):
        assert first.end()[0] == second.end()[0] == 0

    assert_learned_once(one, 2)
    assert_learned_once(other, 2)


@pytest.mark.soak
def test_killed_at_any_moment_a_run_loses_and_doubles_nothing():
    """kill -9 again and again; each time the next command goes on, and in the end nothing shows of it."""
    owner = make_owner()
    sessions, kills = (600, 60) if SOAK else (30, 3)
    fill(owner, sessions)
    moments = random.Random(5)
    steady = """
    def steady(turns, first_seq):
        time.sleep(0.02)
        tell_asked()
        return one_lesson(turns, first_seq)
    distil_by(steady)
    """

    for _ in range(kills):
        with command(owner, steady) as process:
            for _ in range(moments.randint(1, 8)):
                process.line()
            time.sleep(moments.uniform(0, 0.02))
            process.kill()
        look_dead()
    with command(owner, steady) as process:
        status, _, errors = process.end()

    assert status == 0, errors
    assert_learned_once(owner, sessions)
    states = Counter(AutoDreamRun.objects.values_list("state", flat=True))
    assert states == {"abandoned": kills, "finished": 1}


def test_a_process_that_slept_through_its_takeover_cannot_write(tmp_path):
    """As on a laptop that is closed and opened again: it wakes up in the middle of its work."""
    owner = make_owner()
    fill(owner, 3)

    with command(owner, "distil_by(slow)", go=tmp_path / "go") as sleeper:
        assert sleeper.line() == "asked"
        sleeper.send(signal.SIGSTOP)
        look_dead()
        with command(owner) as heir:
            assert heir.end()[0] == 0
        (tmp_path / "go").touch()
        sleeper.send(signal.SIGCONT)
        status, _, errors = sleeper.end()

    assert status == 1
    assert "This run was taken over" in errors
    assert_learned_once(owner, 3)


def test_a_process_that_falls_asleep_within_a_write_bars_nobody(tmp_path):
    """The server ends its transaction after a while, and what was written in it is undone."""
    owner = make_owner()
    fill(owner, 1)
    within = """
    store = lessons._store
    def slow_store(*args, **options):
        store(*args, **options)
        print("written", flush=True)
        wait_for(GO)
    lessons._store = slow_store
    """

    with command(owner, within, go=tmp_path / "go", MIRIX_WORKER_STALLED_SECONDS="1") as sleeper:
        assert sleeper.line() == "written"
        sleeper.send(signal.SIGSTOP)
        look_dead()  # waits for the lock, which the sleeper would keep
        with command(owner) as heir:
            assert heir.end()[0] == 0
        (tmp_path / "go").touch()
        sleeper.send(signal.SIGCONT)
        assert sleeper.end()[0] == 1

    assert_learned_once(owner, 1)


@pytest.mark.soak
def test_the_run_of_a_killed_worker_goes_on_in_the_next(tmp_path):
    owner = make_owner()
    fill(owner, 3)
    run = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 99})

    with worker("distil_by(slow)", go=tmp_path / "never", MIRIX_WORKER_STALLED_SECONDS="2") as process:
        assert process.line() == "asked"
        process.kill()
    with worker(MIRIX_WORKER_STALLED_SECONDS="2") as process:
        eventually(AutoDreamRun.objects.filter(state="finished").exists)
        process.send(signal.SIGTERM)
        assert process.end()[0] == 0

    run.refresh_from_db()
    assert (run.state, run.fence) == ("finished", 2)
    assert_learned_once(owner, 3)


def test_a_worker_told_to_stop_ends_between_two_sessions_and_leaves_the_run(tmp_path):
    owner = make_owner()
    fill(owner, 3)
    run = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 99})

    with worker("distil_by(slow)", go=tmp_path / "go", MIRIX_DISTILLER_MAX_CONCURRENCY="1") as process:
        assert process.line() == "asked"
        process.send(signal.SIGTERM)
        time.sleep(5)  # the grace of short jobs is one second, and the machine may be busy
        (tmp_path / "go").touch()
        assert process.end()[0] == 0

    run.refresh_from_db()
    assert (run.state, run.heartbeat_at) == ("running", None)
    assert SkillExperience.objects.count() == 1
