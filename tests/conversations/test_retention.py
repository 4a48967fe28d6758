"""Retention of what came in: what goes when, what stays, and that nobody else's rows are touched.

The clock is moved rather than the rows: everything is stored by the services, on the days that tests name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import pruning, storage, tasks
from conversations.envelope import checked
from conversations.intake import Accepted, accept, import_session, reason_of, replay, store_overdue
from conversations.models import ConversationMessage, IntakeRecord, Session
from conversations.retention import Scope, prune, prune_all
from conversations.sealing import close_session
from conversations.selectors import dead_sessions_of, distillable, failed_intake_of, turns_of
from mirix.tenants.models import OrganizationSettings
from mirix.tenants.owners import Owner
from tests.conversations.turns import BYE, HELLO, HI, contents
from tests.factories import make_client, make_intake, make_owner

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NONE = {
    "distilled_turns": 0,
    "undistilled_turns": 0,
    "request_bodies": 0,
    "requests": 0,
    "sessions": 0,
    "raw_replies": 0,
    "proposer_replies": 0,
    "searches": 0,
}


@pytest.fixture
def day():
    """Moves the clock to a day of the test, which begins on day 0."""
    with time_machine.travel(START, tick=False) as traveller:
        yield lambda number, **more: traveller.move_to(START + timedelta(days=number, **more), tick=False)


@pytest.fixture
def keep(owner) -> Callable[..., None]:
    """Sets limits of the owner's organization."""

    def keep(**limits: int) -> None:
        fields = {f"{name}_retention_days": days for name, days in limits.items()}
        OrganizationSettings.objects.update_or_create(organization=owner.organization, defaults=fields)

    return keep


def said(count: int, start: int = 1) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"text {number}"} for number in range(start, start + count)]


def distil(owner: Owner, session_id: str = "s-1", through: int | None = None) -> None:
    """Mark a session as a run does: learned from, through its last turn."""
    session = Session.objects.for_owner(owner).get(session_id=session_id)
    session.distilled_through = session.last_seq if through is None else through
    session.state = "distilled"
    session.distilled_at = datetime.now(tz=UTC)
    session.save()


def pruned(owner: Owner, **options: Any) -> dict[str, int]:
    return prune(organization=owner.organization, **options).counts


def seqs(owner: Owner, session_id: str = "s-1") -> list[int]:
    session = Session.objects.for_owner(owner).get(session_id=session_id)
    return [turn.seq for turn in turns_of(session=session)]


def state_of(session_id: str = "s-1") -> dict[str, Any]:
    session = Session.objects.get(session_id=session_id)
    names = ("turn_count", "last_seq", "pruned_through", "distilled_through")
    return {name: getattr(session, name) for name in names}


def fails(*args: Any) -> Any:
    raise RuntimeError("the text of somebody")


class TestDistilledTurns:
    def test_they_go_30_days_after_they_were_learned_from_to_the_second(self, owner, add, day):
        add(HELLO, HI, BYE)
        day(10)
        distil(owner)
        day(40)
        assert pruned(owner) == NONE
        day(40, seconds=1)
        assert pruned(owner) == NONE | {"distilled_turns": 3}
        assert pruned(owner) == NONE
        assert not ConversationMessage.objects.exists()
        session = Session.objects.get()
        assert state_of() == {"turn_count": 0, "last_seq": 3, "pruned_through": 3, "distilled_through": 3}
        assert session.pruned_at == session.emptied_at == START + timedelta(days=40, seconds=1)
        assert session.state == "distilled"

    def test_turns_that_came_after_stay(self, owner, add, day):
        add(HELLO, HI)
        distil(owner)
        day(20)
        add(BYE)
        day(31)
        assert pruned(owner) == NONE | {"distilled_turns": 2}
        assert seqs(owner) == [3]
        assert state_of() == {"turn_count": 1, "last_seq": 3, "pruned_through": 2, "distilled_through": 2}
        assert Session.objects.get().emptied_at is None

    def test_0_keeps_for_ever(self, owner, add, day, settings):
        settings.MIRIX_CONVERSATION_RETENTION_DAYS = 0
        add(HELLO)
        distil(owner)
        day(3_000)
        assert pruned(owner, kinds=["distilled_turns"]) == {"distilled_turns": 0}
        assert seqs(owner) == [1]

    @pytest.mark.parametrize(("days", "left"), [(-1, 1), (10_000_000, 1), (31, 0)])
    def test_an_installation_with_odd_days_prunes_nothing_by_accident(
        self, owner, add, day, settings, days, left
    ):
        settings.MIRIX_CONVERSATION_RETENTION_DAYS = days
        add(HELLO)
        distil(owner)
        day(32)
        pruned(owner, kinds=["distilled_turns"])
        assert ConversationMessage.objects.count() == left

    def test_an_organization_chooses_for_itself(self, owner, stranger, add, day, keep):
        add(HELLO)
        distil(owner)
        add_for(stranger, HELLO)
        distil(stranger)
        keep(conversation=7)
        day(8)
        assert prune_all() == 1
        assert (seqs(owner), seqs(stranger)) == ([], [1])
        keep(conversation=0)
        add(HELLO)
        distil(owner)
        day(365 * 9)
        prune_all()
        assert (seqs(owner), seqs(stranger)) == ([2], [])

    def test_of_one_owner_when_a_run_asks(self, owner, add, day):
        other = add_for(make_owner(owner.organization, "bob"), HELLO)
        add(HELLO)
        for each in (owner, Owner(organization=owner.organization, end_user=other.record.end_user)):
            distil(each)
        day(31)
        result = prune(organization=owner.organization, owner=owner, kinds=["distilled_turns"])
        assert result.counts == {"distilled_turns": 1}
        assert ConversationMessage.objects.get().end_user == other.record.end_user

    def test_an_organization_prunes_nothing_of_another(self, owner, stranger, add, day):
        add(HELLO, HI)
        distil(owner)
        add_for(stranger, HELLO)
        distil(stranger)
        before = snapshot(stranger)
        for number in (500, 1_000):
            day(number)
            prune(organization=owner.organization)
        assert snapshot(stranger) == before
        assert snapshot(owner) == ([], [], [])


class TestUndistilledTurns:
    def test_they_go_180_days_after_they_were_stored_whatever_the_state(self, owner, add, day):
        for state in ("open", "sealed", "dead"):
            add(HELLO, session_id=state)
            Session.objects.filter(session_id=state).update(state=state)
        day(180)
        assert pruned(owner) == NONE
        day(180, seconds=1)
        assert pruned(owner) == NONE | {"undistilled_turns": 3, "requests": 3}
        assert not ConversationMessage.objects.exists()

    def test_conversations_are_never_distilled_and_go_the_same_way(self, owner, add, day):
        add(HELLO, session_tag="conversation")
        day(100)
        add(BYE, session_tag="conversation")
        day(181)
        assert pruned(owner)["undistilled_turns"] == 1
        assert contents() == ["bye"]
        day(281)
        assert pruned(owner)["undistilled_turns"] == 1
        assert contents() == []

    def test_what_was_pruned_unread_is_not_waited_for_any_more(self, owner, add, day, keep):
        keep(conversation=0)
        add(HELLO)
        distil(owner)
        add(HI)
        close_session(owner=owner, session_id="s-1")
        Session.objects.update(state="dead")
        assert dead_sessions_of(organization=owner.organization).count() == 1
        day(181)
        assert pruned(owner)["undistilled_turns"] == 1
        assert state_of() == {"turn_count": 1, "last_seq": 2, "pruned_through": 0, "distilled_through": 2}
        assert dead_sessions_of(organization=owner.organization).count() == 0
        Session.objects.update(state="sealed")
        assert list(distillable()) == []

    def test_the_young_ones_of_a_session_stay_to_be_learned_from(self, owner, add, day):
        add(HELLO, HI)
        day(170)
        add(BYE)
        close_session(owner=owner, session_id="s-1")
        day(181)
        pruned(owner)
        assert state_of() == {"turn_count": 1, "last_seq": 3, "pruned_through": 2, "distilled_through": 2}
        assert [session.session_id for session in distillable()] == ["s-1"]

    def test_0_keeps_for_ever(self, owner, add, day, keep):
        keep(undistilled=0)
        add(HELLO)
        day(3_000)
        assert pruned(owner) == NONE


class TestSessionsAgain:
    """What becomes of a pruned session when its id comes again."""

    def test_it_goes_on_behind_what_was_pruned(self, owner, add, day):
        add(HELLO, HI)
        distil(owner)
        day(31)
        pruned(owner)
        answer = add(BYE).answer
        assert answer["session"] == {"session_id": "s-1", "state": "open", "turn_count": 1}
        assert seqs(owner) == [3]
        assert Session.objects.get().emptied_at is None

    def test_its_history_is_known_pruned_turns_included(self, owner, add, day):
        add(HELLO, HI)
        distil(owner)
        day(31)
        pruned(owner)
        assert add(HELLO, HI, BYE).answer["turns"]["stored"] == 1
        assert contents() == ["bye"]
        assert add(HELLO, HI, BYE, HI, history="full").answer["turns"]["stored"] == 1
        assert seqs(owner) == [3, 4]

    @pytest.mark.parametrize("kept", [0, 1])
    def test_a_shorter_full_history_of_which_nothing_is_left_is_missed_and_kept(self, owner, add, day, kept):
        add(HELLO, HI, HELLO)
        distil(owner)
        if kept:
            add(BYE)
        day(31)
        pruned(owner)
        new = [HI | {"content": "brand new words"}, BYE]
        accepted = add(*new, history="full")
        assert accepted.answer["session"]["state"] == "missed"
        accepted.record.refresh_from_db()
        assert (accepted.record.state, accepted.record.body) == ("failed", {"messages": new})
        assert contents() == ["bye"] * kept
        # What goes up to the turns that are left can be told by the hash of them all.
        if kept:
            same = add(HELLO, HI, HELLO, history="full")
            assert (same.answer["turns"]["stored"], same.answer["turns"]["duplicate"]) == (0, 3)

    def test_a_shorter_full_history_is_compared_with_what_is_left(self, owner, add, day):
        add(HELLO, HI)
        distil(owner)
        add(BYE, HI)
        day(31)
        pruned(owner)
        assert seqs(owner) == [3, 4]
        same = add(HELLO, HI, BYE, history="full")
        assert (same.answer["turns"]["stored"], same.answer["turns"]["duplicate"]) == (0, 3)
        other = add(HELLO, HI, HELLO, history="full")
        assert other.answer["session"]["state"] == "missed"
        assert seqs(owner) == [3, 4]

    def test_the_row_goes_180_days_after_its_last_turn_and_the_id_starts_anew(self, owner, add, day):
        add(HELLO, HI)
        distil(owner)
        day(31)
        pruned(owner)
        day(31 + 180)
        assert pruned(owner)["sessions"] == 0
        day(31 + 180, seconds=1)
        assert pruned(owner)["sessions"] == 1
        assert not Session.objects.exists()
        assert add(HELLO, HI, BYE).answer["turns"]["stored"] == 3
        assert seqs(owner) == [1, 2, 3]

    def test_a_row_that_came_to_life_again_stays(self, owner, add, day, keep):
        add(HELLO)
        distil(owner)
        day(31)
        pruned(owner)
        keep(conversation=0, undistilled=5)
        add(BYE)
        distil(owner)
        day(100)
        pruned(owner)
        assert seqs(owner) == [2]

    def test_an_import_that_comes_again_stores_nothing(self, owner, client_row, day):
        def again() -> Accepted:
            return import_session(client=client_row, owner=owner, session_id="s-1", messages=[HELLO, HI])

        again()
        distil(owner)
        day(31)
        pruned(owner)
        assert again().is_replay
        assert seqs(owner) == []


class TestRequests:
    def test_bodies_that_nobody_replayed_go_after_30_days(self, owner, add, day, monkeypatch):
        add(HELLO, 7, session_id="partial")
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_store", fails)
            add(HELLO, session_id="failed")
        assert failed_intake_of(organization=owner.organization).count() == 1
        day(30)
        assert pruned(owner) == NONE
        day(30, seconds=1)
        assert pruned(owner) == NONE | {"request_bodies": 2}
        partial, failed = IntakeRecord.objects.order_by("created_at", "message_count").in_bulk().values()
        if partial.session_id == "failed":
            partial, failed = failed, partial
        assert (partial.state, failed.state) == ("partial", "failed")
        assert partial.report["stored"] == 1
        assert failed.error == "RuntimeError: the details were dropped with the body after their time"
        for record in (partial, failed):
            assert (record.body, record.body_pruned_at) == (None, START + timedelta(days=30, seconds=1))
            assert replay(record=record).state == record.state
        assert failed_intake_of(organization=owner.organization).count() == 0

    def test_what_waited_for_30_days_has_failed_and_is_never_stored_as_empty(self, owner, add, day):
        add(HELLO, wait=False)
        day(31)
        assert pruned(owner) == NONE | {"request_bodies": 1}
        record = IntakeRecord.objects.get()
        assert (record.state, record.body) == ("failed", None)
        assert reason_of(record=record) == "nobody stored it, and the body was dropped after its time"
        assert store_overdue() == 0
        assert IntakeRecord.objects.get().state == "failed"
        assert add(BYE).answer["session"] == {"session_id": "s-1", "state": "open", "turn_count": 1}

    @pytest.mark.parametrize("wait", [True, False])
    def test_one_that_comes_again_after_its_body_went_is_stored_then(
        self, owner, add, day, monkeypatch, wait
    ):
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_store", fails)
            first = add(HELLO, key="k", wait=wait)
        day(31)
        assert pruned(owner)["request_bodies"] == 1
        again = add(HELLO, key="k", wait=wait)
        assert (again.record.pk, again.record.state, again.answer) == (
            first.record.pk,
            "stored",
            first.answer,
        )
        assert contents() == ["hello"]
        assert add(HELLO, key="k", wait=wait).is_replay
        assert contents() == ["hello"]

    def test_an_import_of_such_a_one_counts_what_it_stored(self, owner, client_row, day, monkeypatch):
        def load() -> Accepted:
            return import_session(client=client_row, owner=owner, session_id="s-1", messages=[HELLO, HI])

        with monkeypatch.context() as patch:
            patch.setattr(storage, "_store", fails)
            load()
        day(31)
        pruned(owner)
        again = load()
        assert (again.is_replay, again.before, again.record.report["stored"]) == (False, {}, 2)
        assert load().is_replay

    def test_the_rows_go_with_the_limit_of_undistilled_turns(self, owner, add, day, keep):
        keep(conversation=0)
        add(HELLO, key="k")
        distil(owner)
        day(180)
        assert pruned(owner) == NONE
        day(180, seconds=1)
        assert pruned(owner) == NONE | {"requests": 1}
        assert ConversationMessage.objects.get().intake is None
        assert not add(HELLO, key="k").is_replay

    def test_a_row_whose_body_is_kept_for_longer_stays_with_it(self, owner, add, day, keep):
        keep(raw=0)
        add(7)
        day(1_000)
        assert pruned(owner) == NONE
        assert IntakeRecord.objects.get().body == {"messages": [7]}


class TestBatches:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        monkeypatch.setattr(pruning, "TURNS_A_BATCH", 3)
        monkeypatch.setattr(pruning, "SESSIONS_A_BATCH", 2)
        monkeypatch.setattr("conversations.retention.ROWS_A_BATCH", 2)

    @pytest.mark.parametrize(
        "sizes", [[1], [3], [4], [7], [1, 1, 1, 1, 1], [2, 7, 1, 3], [10, 10], [6, 6, 6], [3, 3]]
    )
    def test_all_that_is_due_goes_whatever_the_sizes(self, owner, add, day, sizes):
        for number, size in enumerate(sizes):
            add(*said(size), session_id=f"s-{number}")
            distil(owner, f"s-{number}")
        add(*said(4), session_id="young")
        day(31)
        seen: list[tuple[str, int]] = []
        assert pruned(owner, dry_run=True) == NONE | {"distilled_turns": sum(sizes)}
        assert pruned(owner, watch=lambda *batch: seen.append(batch)) == NONE | {
            "distilled_turns": sum(sizes)
        }
        assert all(kind == "distilled_turns" and 1 <= count <= 3 for kind, count in seen)
        assert set(Session.objects.exclude(session_id="young").values_list("turn_count", flat=True)) == {0}
        assert seqs(owner, "young") == [1, 2, 3, 4]
        day(400)
        rest = NONE | {"undistilled_turns": 4, "requests": len(sizes) + 1, "sessions": len(sizes)}
        assert pruned(owner, dry_run=True) == rest
        assert pruned(owner) == rest

    def test_it_stops_between_two_batches_and_goes_on_later(self, owner, add, day):
        add(*said(7))
        distil(owner)
        day(31)
        assert pruned(owner, should_stop=lambda: True)["distilled_turns"] == 3
        assert state_of() == {"turn_count": 4, "last_seq": 7, "pruned_through": 3, "distilled_through": 7}
        assert pruned(owner)["distilled_turns"] == 4

    def test_a_dry_run_writes_nothing(self, owner, add, day):
        add(*said(7))
        distil(owner)
        add(HELLO, session_id="s-2")
        day(181)
        before = snapshot(owner)
        with CaptureQueriesContext(connection) as queries:
            counts = pruned(owner, dry_run=True)
        assert counts == NONE | {"distilled_turns": 7, "undistilled_turns": 1, "requests": 2}
        assert {query["sql"].split()[0] for query in queries.captured_queries} <= {"SELECT", "DECLARE"}
        assert snapshot(owner) == before


def test_the_worker_prunes_every_organization(owner, stranger, add, day):
    for each, adding in ((owner, add), (stranger, lambda *messages: add_for(stranger, *messages))):
        adding(HELLO)
        distil(each)
    day(31)
    tasks.prune.func(FakeContext(), 0)
    assert not ConversationMessage.objects.exists()


def test_what_is_not_due_costs_a_query_per_step(owner, add, day):
    add(HELLO)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            prune(organization=owner.organization)
        return sum("SAVEPOINT" not in query["sql"] for query in captured.captured_queries)

    assert queries() == 1 + len(NONE)
    for number in range(20):
        add(HELLO, session_id=f"n-{number}")
    assert queries() == 1 + len(NONE)


class FakeContext:
    def should_abort(self) -> bool:
        return False


def add_for(owner: Owner, *messages: Any, session_id: str = "s-1") -> Accepted:
    return accept(
        client=make_client(owner.organization),
        owner=owner,
        envelope=checked(messages=list(messages), session_id=session_id),
        wait=True,
    )


def snapshot(owner: Owner) -> tuple[list[Any], ...]:
    """All that is stored of an owner."""
    return tuple(
        list(model.objects.for_owner(owner).order_by("pk").values())
        for model in (Session, ConversationMessage, IntakeRecord)
    )


@pytest.mark.parametrize(
    ("rows", "order", "index"),
    [
        (pruning._distilled_sessions, "first_turn_at", "session_distilled_kept"),
        (pruning._undistilled_sessions, "first_turn_at", "session_undistilled_kept"),
        (pruning._kept_bodies, "created_at", "intake_body_kept"),
        (pruning._old_requests, "created_at", "intake_organization_recent"),
        (pruning._empty_sessions, "emptied_at", "session_emptied"),
    ],
)
def test_what_is_due_is_found_by_an_index(owner, stranger, rows, order, index):
    """Of tables as small as a test's the planner reads all; told not to, it must have another way."""
    scope = Scope(organization=owner.organization, now=START)
    for _ in range(100):  # of another, all of them due: so the planner has a reason to ask for the owner's
        make_intake(stranger)
    IntakeRecord.objects.update(created_at=START - timedelta(days=4_000))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE conversations_intakerecord")
        cursor.execute(
            "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off"
        )
    plan = rows(scope, START).order_by(order).explain()
    assert f"using {index} on" in plan
    assert "Seq Scan on conversations_" not in plan
