"""The claim on a run: exclusive per owner, taken over from a dead process, void for one that lost it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from mirix.tenants.owners import Owner
from skills.models import AutoDreamRun, RunState
from skills.runs import LostRun, OwnerBusy, RunClaim, RunOver, claim, claim_run, running
from tests.factories import make_attempt, make_owner, make_proposer_call, make_session, owner_fields

pytestmark = pytest.mark.django_db


def queued(owner: Owner) -> AutoDreamRun:
    return AutoDreamRun.objects.create(**owner_fields(owner), trigger="api")


def fall_silent(run_id: str, seconds: int = 61) -> None:
    """Make the run look as if its process had died `seconds` ago."""
    AutoDreamRun.objects.filter(pk=run_id).update(heartbeat_at=Now() - timedelta(seconds=seconds))


def hold(held: RunClaim) -> AutoDreamRun:
    with transaction.atomic():
        return held.hold()


def test_a_claim_is_a_running_row(owner):
    held = claim(owner=owner, trigger="command", parameters={"last_n_sessions": 7})

    run = AutoDreamRun.objects.get()
    assert (held.run_id, held.fence, held.owner) == (run.pk, 1, owner)
    assert (run.state, run.trigger, run.fence) == ("running", "command", 1)
    assert run.parameters == {"last_n_sessions": 7}
    assert run.started_at == run.heartbeat_at
    assert run.started_at is not None
    assert running(owner=owner) == run


def test_an_owner_has_one_running_run(owner):
    first = claim(owner=owner, trigger="command")

    with pytest.raises(OwnerBusy) as refused:
        claim(owner=owner, trigger="api")

    assert refused.value.run.pk == first.run_id
    assert AutoDreamRun.objects.count() == 1


def test_other_owners_run_beside_it(owner, stranger):
    claim(owner=owner, trigger="command")
    claim(owner=stranger, trigger="command")
    claim(owner=make_owner(owner.organization), trigger="command")

    assert AutoDreamRun.objects.filter(state="running").count() == 3


def test_a_queued_run_waits_beside_the_running_one(owner):
    first = claim(owner=owner, trigger="command")
    waiting = queued(owner)

    with pytest.raises(OwnerBusy) as refused:
        claim_run(run_id=waiting.pk)
    assert refused.value.run.pk == first.run_id
    waiting.refresh_from_db()
    assert (waiting.state, waiting.fence) == ("queued", 0)

    first.end(RunState.FINISHED)
    held = claim_run(run_id=waiting.pk)
    assert (held.run_id, held.fence) == (waiting.pk, 1)


def test_a_queued_run_is_claimed_once(owner):
    waiting = queued(owner)
    held = claim_run(run_id=waiting.pk)

    with pytest.raises(OwnerBusy) as refused:
        claim_run(run_id=waiting.pk)

    assert refused.value.run.pk == waiting.pk
    assert hold(held).fence == 1


def test_a_run_that_has_ended_is_not_claimed_again(owner):
    held = claim_run(run_id=queued(owner).pk)
    held.end(RunState.FAILED, error="no")

    with pytest.raises(RunOver) as refused:
        claim_run(run_id=held.run_id)

    assert refused.value.run.state == "failed"


def test_an_erased_run_is_not_there(db):
    with pytest.raises(AutoDreamRun.DoesNotExist):
        claim_run(run_id="run-none")


def test_another_run_takes_the_place_of_a_dead_one(owner):
    dead = claim(owner=owner, trigger="command")
    fall_silent(dead.run_id)

    heir = claim(owner=owner, trigger="command")

    run = AutoDreamRun.objects.get(pk=dead.run_id)
    assert run.state == "abandoned"
    assert run.finished_at is not None
    assert run.error == "Its process gave no sign of life any more; another run took its place."
    assert hold(heir).pk != dead.run_id


def test_a_queued_run_takes_the_place_of_a_dead_one(owner):
    dead = claim(owner=owner, trigger="command")
    waiting = queued(owner)
    fall_silent(dead.run_id)

    assert claim_run(run_id=waiting.pk).run_id == waiting.pk
    assert AutoDreamRun.objects.get(pk=dead.run_id).state == "abandoned"


def test_the_same_run_tried_again_goes_on_under_the_next_fence(owner):
    dead = claim_run(run_id=queued(owner).pk)
    started_at = AutoDreamRun.objects.get(pk=dead.run_id).started_at
    fall_silent(dead.run_id)

    heir = claim_run(run_id=dead.run_id)

    assert (heir.run_id, heir.fence) == (dead.run_id, 2)
    assert hold(heir).started_at == started_at
    with pytest.raises(LostRun):
        hold(dead)


def test_a_live_run_is_not_taken_over(owner):
    alive = claim(owner=owner, trigger="command")
    fall_silent(alive.run_id, seconds=58)

    with pytest.raises(OwnerBusy):
        claim(owner=owner, trigger="command")
    assert hold(alive).state == "running"


def test_a_process_that_lost_its_run_cannot_write(owner):
    """As after a laptop's sleep: the process wakes up and believes that the run is still its own."""
    asleep = claim(owner=owner, trigger="command")
    fall_silent(asleep.run_id)
    claim(owner=owner, trigger="command")

    with pytest.raises(LostRun):
        hold(asleep)
    with pytest.raises(LostRun):
        asleep.end(RunState.FINISHED)
    assert not asleep.beat()
    assert AutoDreamRun.objects.get(pk=asleep.run_id).state == "abandoned"


def test_a_process_that_wakes_up_before_anyone_missed_it_goes_on(owner):
    asleep = claim(owner=owner, trigger="command")
    fall_silent(asleep.run_id)

    assert running(owner=owner) is None
    assert asleep.beat()
    assert running(owner=owner).pk == asleep.run_id


def test_holding_outside_a_transaction_is_a_fault_of_the_caller(transactional_db):
    held = claim(owner=make_owner(), trigger="command")
    with pytest.raises(transaction.TransactionManagementError):
        held.hold()


def test_the_last_word_is_said_once(owner):
    held = claim(owner=owner, trigger="command")

    run = held.end(RunState.FINISHED, counts={"experiences": 2}, tokens=5)

    assert (run.state, run.counts, run.tokens) == ("finished", {"experiences": 2}, 5)
    assert run.finished_at is not None
    with pytest.raises(LostRun):
        held.end(RunState.FAILED)


@pytest.mark.django_db(transaction=True)
def test_of_many_claims_at_once_one_wins():
    owner = make_owner()
    gate = threading.Barrier(8)

    def attempt(_: int) -> str:
        try:
            gate.wait()
            return claim(owner=owner, trigger="command").run_id
        except OwnerBusy as busy:
            return busy.run.pk
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(attempt, range(8)))

    assert answers == {AutoDreamRun.objects.get().pk}


@pytest.mark.django_db(transaction=True)
def test_of_many_heirs_at_once_one_wins():
    owner = make_owner()
    dead = claim(owner=owner, trigger="command")
    fall_silent(dead.run_id)
    waiting = queued(owner)
    gate = threading.Barrier(9)

    def attempt(number: int) -> RunClaim | None:
        try:
            gate.wait()
            match number % 3:
                case 0:
                    return claim(owner=owner, trigger="command")
                case 1:
                    return claim_run(run_id=waiting.pk)
            return claim_run(run_id=dead.run_id)
        except (OwnerBusy, RunOver):
            return None
        finally:
            connection.close()

    with ThreadPoolExecutor(9) as pool:
        heirs = [held for held in pool.map(attempt, range(9)) if held]

    assert len(heirs) == 1
    assert hold(heirs[0]).state == "running"
    assert AutoDreamRun.objects.filter(state="running").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_run_in_the_middle_of_a_write_is_not_taken_over():
    owner = make_owner()
    held = claim(owner=owner, trigger="command")
    fall_silent(held.run_id)

    def other() -> str:
        try:
            with pytest.raises(OwnerBusy) as refused:
                claim(owner=owner, trigger="command")
            return refused.value.run.pk
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        held.hold()
        assert pool.submit(other).result(timeout=10) == held.run_id


@pytest.mark.django_db(transaction=True)
def test_a_process_asleep_within_a_write_loses_the_lock(settings):
    """Otherwise a paused process would bar the owner for as long as it sleeps."""
    settings.MIRIX_WORKER_STALLED_SECONDS = 1
    held = claim(owner=make_owner(), trigger="command")
    with transaction.atomic():
        held.hold()
        with connection.cursor() as cursor:
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("1s",)
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("0",)


@pytest.mark.django_db(transaction=True)
def test_a_slow_step_keeps_its_run_by_beating(settings):
    settings.MIRIX_WORKER_STALLED_SECONDS = 0.06
    held = claim(owner=make_owner(), trigger="command")
    first = AutoDreamRun.objects.get().heartbeat_at

    with held.beating():
        for _ in range(500):
            if AutoDreamRun.objects.get().heartbeat_at > first:
                break
            threading.Event().wait(0.01)

    assert AutoDreamRun.objects.get().heartbeat_at > first
    assert f"heartbeat of {held.run_id}" not in [thread.name for thread in threading.enumerate()]


def test_a_run_whose_process_died_says_what_it_used(owner, stranger):
    dead, theirs = claim(owner=owner, trigger="command"), claim(owner=stranger, trigger="command")
    run = AutoDreamRun.objects.get(pk=dead.run_id)
    make_attempt(run, make_session(owner), prompt_tokens=100, completion_tokens=20)
    make_proposer_call(run, prompt_tokens=7, completion_tokens=3)
    fall_silent(dead.run_id)

    claim(owner=owner, trigger="command")

    run.refresh_from_db()
    assert (run.state, run.tokens) == ("abandoned", 130)
    assert AutoDreamRun.objects.get(pk=theirs.run_id).state == "running"
