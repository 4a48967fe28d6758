"""The day's tokens: counted as they are used, and what has no room in the budget waits for the next day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from conversations.models import Session
from mirix.tenants.models import OrganizationSettings, TokenUsage
from mirix.tenants.owners import Owner
from mirix.tenants.usage import count_tokens, tokens_used
from skills import asking
from skills import dream as dreaming
from skills.answers import dream_answer
from skills.asking import Stopped
from skills.distillation.types import DistillerReply
from skills.dream import dream
from skills.evolution.types import EvolutionReport
from skills.models import AutoDreamRun, DistillationAttempt, RunState
from skills.resting import retry_failed
from skills.runs import LostRun, RunClaim, claim, claim_run
from skills.spending import NoRoom, release, reserve, reserved
from skills.triggers import trigger_if_due
from tests.factories import make_owner, make_session
from tests.skills.scripted import ScriptedDistiller, one_lesson

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
A_CALL = 11
"""What `one_lesson` says that it used."""


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())


class Priced(ScriptedDistiller):
    """Takes a token a character, to go by its estimates."""

    def estimate(self, *, characters: int, octets: int = 0, turns: int = 0) -> int:
        return characters


@pytest.fixture
def distiller(monkeypatch) -> Priced:
    scripted = Priced()
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": scripted)
    return scripted


def sealed(owner: Owner, *sizes: int) -> list[Session]:
    """Sessions of so many characters, the oldest first."""
    return [
        make_session(
            owner,
            [{"role": "user", "content": "x" * size}],
            first_turn_at=NOON - timedelta(hours=len(sizes) - number),
        )
        for number, size in enumerate(sizes)
    ]


def budget(owner: Owner, tokens: int) -> None:
    OrganizationSettings.objects.update_or_create(
        organization=owner.organization, defaults={"daily_token_budget": tokens}
    )


def run(owner: Owner, **options: Any) -> AutoDreamRun:
    return dream(claim=claim(owner=owner, trigger="command", parameters={"last_n_sessions": 50}), **options)


def states(owner: Owner) -> list[str]:
    return list(Session.objects.for_owner(owner).order_by("first_turn_at").values_list("state", flat=True))


def test_what_answers_used_is_counted_by_day(owner, chat_server):
    sealed(owner, 20, 20)
    run(owner)
    day = TokenUsage.objects.get()
    assert (day.organization, day.prompt_tokens, day.completion_tokens, day.calls) == (
        owner.organization,
        200,
        20,
        2,
    )


def test_answers_that_are_of_no_use_are_counted_too(owner, chat_server):
    chat_server.answer = lambda request: "I did not find anything."
    sealed(owner, 20)
    run(owner)
    assert DistillationAttempt.objects.get().verdict == "retry"
    assert tokens_used(organization=owner.organization) == 110


def test_without_a_budget_everything_is_asked(owner, distiller):
    sealed(owner, *[10_000] * 5)
    run(owner)
    assert states(owner) == ["distilled"] * 5


@time_machine.travel(NOON, tick=False)
def test_what_has_no_room_is_deferred_to_the_next_day_with_the_reason(owner, distiller):
    budget(owner, 50)
    sessions = sealed(owner, 30, 30, 30, 45, 20)
    # 30 of 50, used 11; 30 of 39, used 22; 30 of 28 does not fit.
    finished = run(owner)
    assert states(owner) == ["distilled"] * 2 + ["sealed"] * 3
    reason = (
        "Of the organization's budget of 50 tokens a day too few are left. The next session takes about 30."
    )
    for session in sessions[2:]:
        session.refresh_from_db()
        assert (session.next_attempt_at, session.last_error, session.attempts) == (MIDNIGHT, reason, 0)
    assert finished.state == "finished"
    assert finished.counts["sessions"]["deferred"] == 3
    assert finished.notes == [{"reason": reason, "deferred": 3, "until": "2026-03-02T00:00:00+00:00"}]
    assert dream_answer(finished)["message"].endswith(f"Deferred until 2026-03-02T00:00:00+00:00: {reason}")
    assert distiller.calls == [("x" * 30, 1)] * 2


def test_the_next_day_it_goes_on_by_itself(owner, distiller):
    budget(owner, 50)
    with time_machine.travel(NOON, tick=False):
        sealed(owner, 30, 30, 30)
        run(owner)
        assert trigger_if_due(owner=owner) is None
    with time_machine.travel(MIDNIGHT + timedelta(minutes=1), tick=False):
        queued = trigger_if_due(owner=owner)
        assert queued is not None
        queued.delete()
        run(owner)
    assert states(owner) == ["distilled"] * 3
    assert [day.tokens for day in TokenUsage.objects.order_by("day")] == [2 * A_CALL, A_CALL]


def test_whoever_raises_the_budget_need_not_wait(owner, distiller):
    budget(owner, 30)
    sealed(owner, 30, 30)
    run(owner)
    budget(owner, 300)
    assert retry_failed(owner=owner) == 1
    run(owner)
    assert states(owner) == ["distilled"] * 2


@time_machine.travel(NOON, tick=False)
def test_a_session_that_no_day_has_room_for_keeps_back_no_other(owner, distiller):
    budget(owner, 50)
    large, _ = sealed(owner, 51, 20)
    finished = run(owner)
    assert states(owner) == ["sealed", "distilled"]
    large.refresh_from_db()
    assert large.next_attempt_at == MIDNIGHT
    assert large.last_error == (
        "The session is too large for the organization's budget of 50 tokens a day. It takes about 51."
    )
    assert finished.counts["sessions"]["deferred"] == 1


def test_what_others_of_the_organization_used_counts_and_no_other_organization(owner, stranger, distiller):
    budget(owner, 50)
    budget(stranger, 50)
    count_tokens(organization=owner.organization, prompt=40, completion=0)
    for each in (make_owner(owner.organization), stranger):
        sealed(each, 30)
        run(each)
        assert states(each) == ["distilled" if each is stranger else "sealed"]


def test_rules_cost_nothing(owner, settings):
    settings.MIRIX_DISTILLER = "offline"
    budget(owner, 1)
    sealed(owner, 100)
    run(owner)
    assert states(owner) == ["distilled"]
    assert not TokenUsage.objects.exists()


def test_what_is_on_its_way_is_waited_for_where_it_may_leave_room(owner, distiller, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 4
    budget(owner, 65)
    sealed(owner, 30, 30, 30, 30)
    run(owner)
    # Each takes 11 in the end, and never is there room for more than two that may take 30.
    assert states(owner) == ["distilled"] * 4
    assert distiller.most_at_once <= 2


def test_what_another_run_has_on_its_way_is_waited_for(owner, distiller, monkeypatch):
    budget(owner, 50)
    sealed(owner, 30)
    other = begun(make_owner(owner.organization))
    assert reserve(organization=owner.organization, claim=other, tokens=40) == 40
    monkeypatch.setattr(asking.time, "sleep", lambda _: release(claim=other, tokens=40))
    run(owner)
    assert states(owner) == ["distilled"]


def test_answers_on_their_way_are_not_deferred(owner, distiller, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 2
    budget(owner, 70)
    sealed(owner, 30, 30, 60, 60)
    finished = run(owner)
    assert states(owner) == ["distilled"] * 2 + ["sealed"] * 2
    assert finished.counts["sessions"] == {
        "distilled": 2, "empty": 0, "retry": 0, "dead": 0, "deferred": 2
    }  # fmt: skip


def begun(owner: Owner) -> RunClaim:
    return claim(owner=owner, trigger="api", parameters={})


def has_room(held: RunClaim, tokens: int) -> bool:
    try:
        return reserve(organization=held.owner.organization, claim=held, tokens=tokens) == tokens
    except NoRoom as none:
        return not none.others_wait


def test_runs_share_what_is_left_wherever_they_work(owner, stranger):
    one, other, foreign = begun(owner), begun(make_owner(owner.organization)), begun(stranger)
    budget(owner, 50)
    budget(stranger, 50)
    assert has_room(one, 30)
    assert not has_room(other, 30)
    assert has_room(foreign, 30)
    release(claim=one, tokens=30)
    assert has_room(other, 50)
    assert not has_room(one, 1)


def test_more_than_is_left_is_not_waited_for(owner):
    held = begun(owner)
    budget(owner, 50)
    count_tokens(organization=owner.organization, prompt=30, completion=0)
    with pytest.raises(NoRoom) as none:
        reserve(organization=owner.organization, claim=held, tokens=21)
    assert not none.value.others_wait


@pytest.mark.parametrize("end", ["dies", "ends", "is taken over"])
def test_what_a_run_had_set_aside_is_free_when_it(owner, end):
    held, other = begun(owner), begun(make_owner(owner.organization))
    budget(owner, 50)
    assert has_room(held, 50)
    if end == "ends":
        held.end(RunState.FINISHED)
    else:
        AutoDreamRun.objects.filter(pk=held.run_id).update(heartbeat_at=None)
    if end == "is taken over":
        claim_run(run_id=held.run_id)
    assert reserved(organization=owner.organization) == 0
    assert has_room(other, 50)
    release(claim=held, tokens=50)
    assert reserved(organization=owner.organization) == 50


def test_a_process_that_lost_its_run_sets_nothing_aside(owner):
    held = begun(owner)
    budget(owner, 50)
    AutoDreamRun.objects.update(fence=9)
    with pytest.raises(LostRun):
        reserve(organization=owner.organization, claim=held, tokens=1)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_no_more_are_asked_than_there_is_room_for():
    organization, ready = make_owner().organization, Barrier(8)
    budget(Owner(organization=organization, end_user=make_owner(organization).end_user), 100)
    held = [begun(make_owner(organization)) for _ in range(8)]

    def ask(each: RunClaim) -> bool:
        ready.wait()
        try:
            return has_room(each, 30)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, held)) == 3
    assert reserved(organization=organization) == 90


def taken_over(turns, first_seq) -> DistillerReply:
    AutoDreamRun.objects.update(heartbeat_at=None)
    claim_run(run_id=AutoDreamRun.objects.get().pk)
    connection.close()
    return one_lesson(turns, first_seq)


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_lost_keeps_nothing_reserved_and_its_answers_are_counted(monkeypatch):
    owner = make_owner()
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": Priced(taken_over))
    budget(owner, 100)
    sealed(owner, 30)
    with pytest.raises(LostRun):
        run(owner)
    assert reserved(organization=owner.organization) == 0
    assert tokens_used(organization=owner.organization) == A_CALL


def test_a_run_that_is_stopped_defers_nothing(owner, distiller):
    budget(owner, 100)
    (session,) = sealed(owner, 30)
    with pytest.raises(Stopped):
        run(owner, should_stop=lambda: True)
    session.refresh_from_db()
    assert (session.state, session.next_attempt_at) == ("sealed", None)


def test_an_hour_before_midnight_it_waits_an_hour(owner, distiller):
    budget(owner, 50)
    with time_machine.travel(MIDNIGHT - timedelta(hours=1), tick=False):
        count_tokens(organization=owner.organization, prompt=50, completion=0)
        (session,) = sealed(owner, 30)
        run(owner)
        session.refresh_from_db()
        assert session.next_attempt_at == timezone.now() + timedelta(hours=1)
