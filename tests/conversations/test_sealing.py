"""Sealing: by a newer session, by idleness, by close; re-opened by new turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from conversations import sealing
from conversations.envelope import checked
from conversations.intake import accept, store_queued
from conversations.models import IntakeRecord, Session
from conversations.sealing import close_session, on_sealed, seal_sessions
from conversations.selectors import distillable_sessions, sealable
from tests.factories import make_owner, make_session

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TURNS = [{"role": "user", "content": "hello"}]


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def add(owner, client_row, clock):
    """Add a turn to a session, a minute after whatever came before."""

    def add(session_id: str, text: str = "hello", *, wait: bool = True, **fields) -> Session | None:
        clock.shift(timedelta(minutes=1))
        accept(
            client=client_row,
            owner=owner,
            envelope=checked(messages=[{"role": "user", "content": text}], session_id=session_id, **fields),
            wait=wait,
        )
        return Session.objects.filter(session_id=session_id).first()

    return add


@pytest.fixture
def told(monkeypatch):
    """The owners that were told of sealed sessions."""
    told: list = []
    monkeypatch.setattr(sealing, "_callbacks", [])
    on_sealed(told.append)
    return told


def states() -> dict[str, str]:
    return dict(Session.objects.values_list("session_id", "state"))


class TestByNewerSession:
    def test_the_newest_session_stays_open(self, add):
        for name in ("a", "b", "c"):
            add(name)
        assert states() == {"a": "sealed", "b": "sealed", "c": "open"}

    def test_a_session_alone_stays_open(self, add):
        add("a")
        add("a")
        assert states() == {"a": "open"}

    def test_sessions_of_another_user_do_not_count(self, add, owner, client_row):
        add("a")
        make_session(make_owner(owner.organization), TURNS, state="open", first_turn_at=NOON)
        assert seal_sessions() == 0
        assert states()["a"] == "open"

    def test_it_does_not_matter_which_of_two_queued_sessions_is_stored_first(self, add):
        add("a", wait=False)
        add("b", wait=False)
        for record in IntakeRecord.objects.order_by("-created_at"):
            store_queued(intake_id=record.pk)
        assert states() == {"a": "sealed", "b": "open"}


class TestReopening:
    def test_new_turns_reopen_a_sealed_session(self, add):
        add("a")
        add("b")
        session = add("a")
        assert (session.state, session.reopened_at) == ("open", NOON + timedelta(minutes=3))
        assert (session.sealed_at, session.closed_at) == (None, None)

    @pytest.mark.parametrize("state", ["distilled", "dead"])
    def test_and_a_distilled_or_dead_one_which_starts_afresh(self, add, state):
        add("a")
        Session.objects.update(
            state=state,
            distilled_through=1,
            distilled_at=NOON,
            attempts=5,
            last_error="no",
            next_attempt_at=NOON,
        )
        session = add("a")
        assert (session.state, session.attempts, session.last_error) == ("open", 0, "")
        assert session.next_attempt_at is None
        assert (session.distilled_through, session.distilled_at) == (1, NOON)

    def test_a_reopened_session_is_not_sealed_by_one_that_began_before_its_last_turn(self, add):
        add("a")
        add("b")
        add("a")
        assert seal_sessions() == 0
        add("c")
        assert states() == {"a": "sealed", "b": "sealed", "c": "open"}

    def test_two_sessions_written_in_turn_stay_open_until_something_truly_newer(self, add):
        for _ in range(50):
            add("a")
            add("b")
        assert states() == {"a": "open", "b": "open"}
        add("c")
        assert states() == {"a": "sealed", "b": "sealed", "c": "open"}


class TestByIdleness:
    def test_after_the_idle_minutes(self, add, settings, clock):
        settings.MIRIX_SESSION_IDLE_MINUTES = 30
        add("a")
        assert seal_sessions() == 0
        clock.shift(timedelta(minutes=30))
        assert seal_sessions() == 0
        clock.shift(timedelta(seconds=1))
        assert seal_sessions() == 1
        session = Session.objects.get()
        assert session.state == "sealed"
        assert session.sealed_at == NOON + timedelta(minutes=31, seconds=1)

    def test_never_with_zero(self, add, settings, clock):
        settings.MIRIX_SESSION_IDLE_MINUTES = 0
        add("a")
        clock.shift(timedelta(days=400))
        assert seal_sessions() == 0

    def test_one_owner_alone_when_asked(self, add, owner, stranger, clock):
        add("a")
        make_session(stranger, TURNS, state="open", session_id="x", last_turn_at=NOON)
        clock.shift(timedelta(days=1))
        assert seal_sessions(owner=owner) == 1
        assert states() == {"a": "sealed", "x": "open"}
        assert seal_sessions() == 1

    def test_in_batches(self, owner, clock, monkeypatch):
        monkeypatch.setattr(sealing, "BATCH", 2)
        for _ in range(5):
            make_session(owner, TURNS, state="open", first_turn_at=NOON, last_turn_at=NOON)
        assert seal_sessions(now=NOON + timedelta(days=1)) == 5


class TestOneRule:
    """What a run counts on to be sealed (`sealable`) is what is sealed."""

    @pytest.mark.parametrize("idle_minutes", [0, 30])
    def test_those_that_are_sealable_are_sealed(self, owner, stranger, settings, idle_minutes):
        settings.MIRIX_SESSION_IDLE_MINUTES = idle_minutes
        minutes = [-90, -40, -20, -1]
        spans = [(first, last) for first in minutes for last in minutes if first <= last]
        for whose in (owner, stranger, make_owner(owner.organization)):
            for first, last in spans[:: 1 if whose == owner else 3]:
                times = {"first_turn_at": first, "last_turn_at": last}
                times = {name: NOON + timedelta(minutes=shift) for name, shift in times.items()}
                for state in ("open", "sealed", "dead"):
                    make_session(whose, TURNS, state=state, **times)
            make_session(whose, state="open")  # without a turn, as one that is just being made
        of_owner = set(sealable(now=NOON).for_owner(owner).values_list("pk", flat=True))
        of_all = set(sealable(now=NOON).values_list("pk", flat=True))
        assert 0 < len(of_owner) < len(of_all)
        assert seal_sessions(owner=owner, now=NOON) == len(of_owner)
        assert set(Session.objects.filter(sealed_at=NOON).values_list("pk", flat=True)) == of_owner
        assert seal_sessions(now=NOON) == len(of_all - of_owner)
        assert set(Session.objects.filter(sealed_at=NOON).values_list("pk", flat=True)) == of_all


class TestClosing:
    def test_close_seals_and_says_when(self, add, owner):
        add("a")
        session = close_session(owner=owner, session_id="a")
        assert (session.state, session.closed_at) == ("sealed", NOON + timedelta(minutes=1))

    def test_closing_again_changes_nothing(self, add, owner, clock):
        add("a")
        first = close_session(owner=owner, session_id="a")
        clock.shift(timedelta(hours=1))
        again = close_session(owner=owner, session_id="a")
        assert (again.closed_at, again.sealed_at) == (first.closed_at, first.sealed_at)

    @pytest.mark.parametrize("state", ["distilled", "dead"])
    def test_what_is_past_sealing_stays_there(self, add, owner, state):
        add("a")
        Session.objects.update(state=state)
        assert close_session(owner=owner, session_id="a").state == state

    def test_requests_that_still_wait_are_stored_first(self, add, owner):
        add("a", wait=False)
        add("a", "bye", wait=False)
        session = close_session(owner=owner, session_id="a")
        assert (session.state, session.turn_count) == ("sealed", 2)

    def test_new_turns_reopen_a_closed_session_until_it_is_closed_again(self, add, owner):
        add("a")
        close_session(owner=owner, session_id="a")
        assert add("a").state == "open"
        assert close_session(owner=owner, session_id="a").state == "sealed"

    def test_a_stranger_closes_nothing(self, add, stranger):
        add("a")
        with pytest.raises(Session.DoesNotExist):
            close_session(owner=stranger, session_id="a")
        assert states() == {"a": "open"}


class TestTelling:
    def test_each_owner_is_told_once(self, add, told, owner, stranger, clock):
        add("a")
        make_session(stranger, TURNS, state="open", last_turn_at=NOON)
        make_session(owner, TURNS, state="open", last_turn_at=NOON)
        seal_sessions(now=NOON + timedelta(days=1))
        assert sorted(told, key=str) == sorted([owner, stranger], key=str)

    def test_close_tells_when_the_seal_is_there(self, add, owner, told, monkeypatch):
        seen: list = []
        on_sealed(lambda owner: seen.extend(distillable_sessions(owner=owner)))
        add("a")
        session = close_session(owner=owner, session_id="a")
        close_session(owner=owner, session_id="a")
        assert told == [owner]
        assert seen == [session]

    def test_conversations_are_sealed_in_silence(self, add, owner, told):
        add("a", session_tag="conversation")
        close_session(owner=owner, session_id="a")
        assert states() == {"a": "sealed"}
        assert told == []

    def test_a_callback_that_fails_undoes_itself_and_not_the_seal(self, add, owner, told, caplog):
        def spoil(owner) -> None:
            Session.objects.update(last_error="spoiled")
            raise RuntimeError("no")

        on_sealed(spoil)
        add("a")
        session = close_session(owner=owner, session_id="a")
        session.refresh_from_db()
        assert (session.state, session.last_error) == ("sealed", "")
        assert "what follows the sealing of sessions" in caplog.text

    def test_a_callback_is_registered_once(self, told, owner, add):
        callback = sealing._callbacks[0]
        on_sealed(callback)
        add("a")
        close_session(owner=owner, session_id="a")
        assert told == [owner]


class TestDistillable:
    def names(self, owner, **fields) -> list[str]:
        return [session.session_id for session in distillable_sessions(owner=owner, **fields)]

    def test_sealed_task_sessions_with_something_new_oldest_first(self, owner):
        def make(name: str, minutes: int, **fields) -> None:
            when = NOON + timedelta(minutes=minutes)
            make_session(owner, TURNS, session_id=name, first_turn_at=when, **fields)

        make("second", 2)
        make("first", 1)
        make("third", 3, distilled_through=0, next_attempt_at=NOON)
        make("open", 0, state="open")
        make("dead", 0, state="dead")
        make("talk", 0, tag="conversation")
        make("read", 0, distilled_through=1)
        make("later", 0, next_attempt_at=NOON + timedelta(hours=1))
        now = NOON + timedelta(minutes=30)
        assert self.names(owner, now=now) == ["first", "second", "third"]
        assert self.names(owner, now=now, limit=2) == ["first", "second"]
        assert self.names(owner, now=NOON + timedelta(hours=2))[0] == "later"

    def test_not_those_of_a_stranger(self, owner, stranger):
        make_session(stranger, TURNS)
        assert self.names(owner) == []
