"""Pruning beside others: killed in the middle, several at once, beside requests and proposals."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from conversations.envelope import checked
from conversations.intake import accept
from conversations.models import ConversationMessage, Session
from conversations.retention import Scope, prune, steps
from mirix.tenants.owners import Owner
from skills import retention
from skills.models import SkillExperience
from tests.factories import make_client, make_experience, make_owner, make_proposal, make_session
from tests.processes import SOAK, Process, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

LONG_AGO = datetime.now(tz=UTC) - timedelta(days=60)
SMALL_BATCHES = """
from conversations import pruning
pruning.TURNS_A_BATCH, pruning.SESSIONS_A_BATCH = 7, 3
"""
PRUNE = f"""
from django.core.management import call_command
{SMALL_BATCHES}
call_command("prune_conversations")
"""
SLOW_PRUNE = f"""
import time
from django.core.management import call_command
{SMALL_BATCHES}
deleting = pruning._delete_turns

def slowly(*args):
    count = deleting(*args)
    print("deleted", flush=True)
    time.sleep(0.01)
    return count

pruning._delete_turns = slowly
call_command("prune_conversations")
"""


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="alice")


def old_session(owner: Owner, turns: int, **fields: Any) -> Session:
    """A session that was learned from long ago, its second turn quoted by an experience."""
    session = make_session(
        owner,
        [{"role": "user", "content": f"text {number}"} for number in range(turns)],
        **(
            {
                "state": "distilled",
                "distilled_through": turns,
                "first_turn_at": LONG_AGO,
                "last_turn_at": LONG_AGO,
                "distilled_at": LONG_AGO,
            }
            | fields
        ),
    )
    make_experience(owner, session, turn=session.turns.get(seq=min(2, turns)), turn_seq=min(2, turns))
    return session


def is_consistent() -> bool:
    """Every session says how many turns it has, and through which they are gone."""
    for session in Session.objects.all():
        seqs = list(session.turns.order_by("seq").values_list("seq", flat=True))
        gone = seqs[0] - 1 if seqs else session.last_seq
        if (session.turn_count, session.pruned_through) != (len(seqs), gone):
            return False
    return True


@pytest.mark.soak
def test_killed_at_random_moments_it_is_started_again_and_ends_where_it_would_have(owner):
    sessions, kills = (1_000, 20) if SOAK else (40, 3)
    stranger = make_owner(user_id="alice")
    kept = old_session(stranger, 5, distilled_at=datetime.now(tz=UTC))
    for number in range(sessions):
        old_session(owner, number % 12 + 1)
    held = SkillExperience.objects.for_owner(owner).order_by("pk").first()
    make_proposal(owner).experiences.set([held])
    total = ConversationMessage.objects.for_owner(owner).count()
    chance = random.Random(sessions)

    for kill in range(kills):
        with Process(SLOW_PRUNE) as process:
            for _ in range(kill % 3 + 1):
                assert process.line() == "deleted"
            time.sleep(chance.random() / 50)
            process.kill()
        eventually(is_consistent)
    left = ConversationMessage.objects.for_owner(owner).count()
    assert 1 < left < total

    with Process(PRUNE) as process:
        status, _, errors = process.end()
    assert status == 0, errors
    assert is_consistent()
    assert list(ConversationMessage.objects.for_owner(owner).values_list("pk", flat=True)) == [held.turn_id]
    assert SkillExperience.objects.for_owner(owner).filter(turn_pruned_at=None).count() == 1
    assert kept.turns.count() == 5


@pytest.mark.soak
def test_several_at_once_share_the_work_and_requests_go_on(owner):
    sessions = 400 if SOAK else 30
    for number in range(sessions):
        old_session(owner, 10, session_id=f"old-{number}")
    client = make_client(owner.organization)
    with Process(PRUNE) as one, Process(PRUNE) as two, Process(PRUNE) as three:
        for number in range(0, sessions, 3):
            accepted = accept(
                client=client,
                owner=owner,
                envelope=checked(
                    messages=[{"role": "user", "content": "new"}], session_id=f"old-{number}", history="delta"
                ),
                wait=True,
            )
            assert accepted.record.state == "stored"
        ends = [process.end() for process in (one, two, three)]
    assert [(status, errors) for status, _, errors in ends] == [(0, "")] * 3
    prune(organization=owner.organization)  # of sessions that were written to, what they passed over

    assert is_consistent()
    turns = ConversationMessage.objects.for_owner(owner).values_list("session__session_id", "seq", "content")
    assert sorted(turns) == sorted((f"old-{number}", 11, "new") for number in range(0, sessions, 3))


def while_another(act: Callable[[], object], do: Callable[[], object]) -> None:
    """Have `do` done while another connection has done `act` and not committed it."""
    ready, over = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                act()
                ready.set()
                assert over.wait(30)
        finally:
            ready.set()
            connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert ready.wait(30)
        do()
    finally:
        over.set()
        thread.join()


def distilled_turns(owner: Owner) -> int:
    return prune(organization=owner.organization).counts["distilled_turns"]


def test_a_turn_that_is_just_being_proposed_stays(owner):
    old_session(owner, 3)
    experience = SkillExperience.objects.get()
    proposal = make_proposal(owner)

    def proposing() -> None:
        SkillExperience.objects.select_for_update(no_key=True).get()
        proposal.experiences.set([experience])

    counts: list[int] = []
    while_another(proposing, lambda: counts.append(distilled_turns(owner)))
    assert counts == [2]
    assert distilled_turns(owner) == 0
    assert ConversationMessage.objects.get().pk == experience.turn_id


def test_what_proposes_waits_for_a_batch_that_was_first_and_finds_the_quote_alone(owner):
    session = old_session(owner, 3)
    turns = list(session.turns.values_list("pk", flat=True))

    def claiming() -> None:
        assert retention.claim_turns(turns) == set()

    def propose() -> None:
        with transaction.atomic():
            assert list(SkillExperience.objects.select_for_update(no_key=True, skip_locked=True)) == []

    while_another(claiming, propose)


def test_a_session_that_somebody_writes_to_is_passed_over(owner):
    busy, quiet = old_session(owner, 3), old_session(owner, 4)
    counts: list[int] = []
    while_another(
        lambda: Session.objects.select_for_update(no_key=True).get(pk=busy.pk),
        lambda: counts.append(distilled_turns(owner)),
    )
    assert counts == [4]
    assert (busy.turns.count(), quiet.turns.count()) == (3, 0)
    assert distilled_turns(owner) == 3


def test_a_request_that_meets_the_end_of_a_row_starts_anew(owner):
    session = make_session(owner, [], session_id="again", first_turn_at=LONG_AGO, state="distilled")
    Session.objects.filter(pk=session.pk).update(last_seq=7, emptied_at=LONG_AGO - timedelta(days=365))
    client = make_client(owner.organization)
    envelope = checked(messages=[{"role": "user", "content": "new"}], session_id="again")
    states: list[str] = []

    def adding() -> None:
        try:
            states.append(accept(client=client, owner=owner, envelope=envelope, wait=True).record.state)
        finally:
            connection.close()

    thread = threading.Thread(target=adding)
    [step] = [step for step in steps() if step.kind == "sessions"]
    with transaction.atomic():
        assert next(step.prune(Scope(organization=owner.organization, now=LONG_AGO), LONG_AGO)) == 1
        thread.start()
        eventually(somebody_waits)
    thread.join()
    assert states == ["stored"]
    assert list(ConversationMessage.objects.values_list("session__session_id", "seq")) == [("again", 1)]


def somebody_waits() -> bool:
    """Return whether another connection waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted"
            " AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
        )
        return cursor.fetchone() == (True,)
