"""Intake: every accepted request is a row; its turns are stored once, in order, or the row says why not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, DataError, OperationalError
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations import intake, storage
from conversations.envelope import checked
from conversations.extraction.reading import EXPECTED
from conversations.intake import accept, replay, store_queued
from conversations.models import ConversationMessage, IntakeRecord, Session
from tests.conversations.turns import BYE, HELLO, HI, RULES, contents
from tests.factories import make_owner


class TestAddingAtOnce:
    def test_the_answer_accounts_for_every_message(self, add):
        accepted = add(RULES, HELLO, HI, {"role": "user", "content": ""}, "what")
        record = accepted.record
        assert accepted.answer == {
            "success": True,
            "message": "Accepted. 2 turns stored.",
            "status": "processed",
            "message_count": 5,
            "intake_id": record.pk,
            "session": {"session_id": "s-1", "state": "open", "turn_count": 2},
            "turns": {
                "stored": 2,
                "truncated": 0,
                "duplicate": 0,
                "skipped": [
                    {"index": 0, "reason": "system message"},
                    {"index": 3, "reason": "empty message"},
                    {
                        "index": 4,
                        "reason": f"{EXPECTED}, got a string",
                        "unreadable": True,
                    },
                ],
                "omitted": {},
                "roles": {"user": 1, "assistant": 1},
            },
        }

    def test_turns_carry_owner_client_request_and_order(self, add, owner, client_row):
        record = add(HELLO, HI).record
        turns = list(ConversationMessage.objects.order_by("seq"))
        assert [(turn.seq, turn.role, turn.content) for turn in turns] == [
            (1, "user", "hello"),
            (2, "assistant", "hi"),
        ]
        for turn in turns:
            assert (turn.organization, turn.end_user) == (owner.organization, owner.end_user)
            assert (turn.client, turn.intake) == (client_row, record)

    def test_the_body_goes_once_everything_is_stored(self, add):
        record = add(RULES, HELLO).record
        record.refresh_from_db()
        assert (record.state, record.body, record.error) == ("stored", None, "")
        assert record.stored_at is not None

    def test_the_body_stays_while_a_message_is_not_understood(self, add):
        record = add(HELLO, {"role": "narrator", "content": "Night falls."}).record
        record.refresh_from_db()
        assert record.state == "partial"
        assert record.body == {"messages": [HELLO, {"role": "narrator", "content": "Night falls."}]}

    def test_later_requests_continue_the_session(self, add):
        add(HELLO)
        assert add(HI, BYE).answer["session"]["turn_count"] == 3
        assert contents() == ["hello", "hi", "bye"]

    def test_one_session_id_of_two_users_is_two_sessions(self, add, client_row, owner):
        add(HELLO)
        other = make_owner(owner.organization)
        accept(client=client_row, owner=other, envelope=checked(messages=[HI], session_id="s-1"), wait=True)
        assert sorted(Session.objects.values_list("turn_count", flat=True)) == [1, 1]

    def test_a_request_without_a_turn_makes_no_session(self, add):
        accepted = add(RULES)
        assert accepted.answer["session"] == {"session_id": "s-1", "state": "open", "turn_count": 0}
        assert accepted.record.state == "stored"
        assert not Session.objects.exists()

    def test_without_session_id_nothing_is_learned_and_the_answer_says_so(self, add):
        accepted = add(HELLO, HI, session_id="")
        assert accepted.answer["message"] == "Accepted. Without session_id nothing is learned from it."
        assert accepted.answer["session"] is None
        assert accepted.answer["turns"]["skipped"] == [
            {"index": 0, "reason": "no session_id: nothing is learned from it"},
            {"index": 1, "reason": "no session_id: nothing is learned from it"},
        ]
        assert (accepted.record.state, accepted.record.body) == ("stored", None)
        assert not ConversationMessage.objects.exists()

    def test_hostile_text_is_stored_clean(self, add):
        add({"role": "user", "content": "a\x00b\ud800", "\x00": float("nan")}, "\ud800\x00")
        assert contents() == ["ab\ufffd"]

    def test_a_result_finds_its_tool_in_an_earlier_request(self, add):
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
        add({"role": "assistant", "content": None, "tool_calls": [call]})
        add({"role": "tool", "tool_call_id": "c1", "content": "Error: no money"})
        turn = ConversationMessage.objects.get(seq=2)
        assert (turn.content, turn.tool_name, turn.is_error) == ("[pay] Error: no money", "pay", True)

    def test_occurred_at_is_kept_on_the_turns(self, add):
        when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
        add(HELLO, occurred_at=when)
        assert ConversationMessage.objects.get().occurred_at == when


class TestTags:
    def test_filter_tags_travel_to_the_session_and_later_ones_win_key_by_key(self, add):
        add(HELLO, filter_tags={"project": "a", "team": "x"})
        add(HI, filter_tags={"project": "b"})
        assert Session.objects.get().filter_tags == {"project": "b", "team": "x"}

    def test_the_session_tag_is_task_until_somebody_says_otherwise(self, add):
        add(HELLO)
        assert Session.objects.get().tag == "task"
        add(HI, session_tag="conversation")
        assert Session.objects.get().tag == "conversation"
        add(BYE)
        assert Session.objects.get().tag == "conversation"


class TestFailure:
    """Storing turns may fail in any way; the add never does."""

    @pytest.fixture
    def broken(self, monkeypatch):
        def fail(*args: Any, **kwargs: Any) -> None:
            raise DataError("invalid input")

        monkeypatch.setattr(storage, "_rows", fail)

    def test_the_add_succeeds_and_says_that_the_session_was_missed(self, add, broken):
        accepted = add(HELLO)
        assert accepted.answer["session"] == {
            "session_id": "s-1",
            "state": "missed",
            "reason": "storing the turns failed (DataError)",
        }
        assert accepted.answer["success"] is True
        assert accepted.answer["turns"] is None

    def test_the_record_keeps_body_and_reason(self, add, broken):
        record = IntakeRecord.objects.get(pk=add(HELLO).record.pk)
        assert (record.state, record.error) == ("failed", "DataError: invalid input")
        assert record.body == {"messages": [HELLO]}
        assert not Session.objects.exists()

    def test_a_passing_fault_is_written_down_by_its_kind_alone(self, add, monkeypatch, caplog):
        store, faults = storage._rows, [DataError("invalid input: the caller's words")]

        def fail_once(*args: Any, **kwargs: Any) -> Any:
            if faults:
                raise faults.pop()
            return store(*args, **kwargs)

        monkeypatch.setattr(storage, "_rows", fail_once)
        assert add(HELLO).record.state == "stored"
        assert caplog.messages == ["storing a request at once failed (DataError); going step by step"]

    @pytest.mark.parametrize("where", ["_lock_session", "extract", "_update_session"])
    def test_no_fault_of_storage_reaches_the_caller(self, add, monkeypatch, where):
        def fail(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError("bug")

        monkeypatch.setattr(storage, where, fail)
        assert add(HELLO).answer["session"]["state"] == "missed"
        assert IntakeRecord.objects.get().body == {"messages": [HELLO]}

    @pytest.mark.parametrize("where", ["_lock_session", "extract", "_update_session"])
    def test_what_may_pass_by_itself_leaves_the_turns_to_the_worker(self, add, monkeypatch, where):
        add(HELLO)

        def fail(*args: Any, **kwargs: Any) -> None:
            raise OperationalError("no room on the disk")

        with monkeypatch.context() as patch:
            patch.setattr(storage, where, fail)
            accepted = add(BYE)
        record = IntakeRecord.objects.get(state="queued")
        assert accepted.answer == {
            "success": True,
            "message": "Accepted. The turns are stored by the worker.",
            "status": "queued",
            "message_count": 1,
            "intake_id": record.pk,
            "session": {"session_id": accepted.record.session_id, "state": "open", "turn_count": 1},
            "turns": None,
        }
        assert (record.body, record.error) == ({"messages": [BYE]}, "")
        assert ProcrastinateJob.objects.get().args == {"intake_id": record.pk}
        store_queued(intake_id=record.pk)
        assert contents() == ["hello", "bye"]

    def test_a_database_error_inside_the_savepoint_leaves_the_record(self, add, monkeypatch):
        def fail(*args: Any, **kwargs: Any) -> None:
            ConversationMessage.objects.create(seq=1)  # violates NOT NULL in the database itself

        monkeypatch.setattr(storage, "_rows", fail)
        assert add(HELLO).answer["session"]["reason"] == "storing the turns failed (IntegrityError)"
        assert IntakeRecord.objects.get().error.startswith("IntegrityError: null value in column")

    def test_a_failed_request_leaves_the_session_as_it_was(self, add, monkeypatch):
        add(HELLO)
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_report", lambda *args: 1 / 0)
            add(HI)
        session = Session.objects.get()
        assert (session.last_seq, session.turn_count) == (1, 1)
        add(BYE)
        assert contents() == ["hello", "bye"]

    def test_replay_stores_it_once_the_cause_is_gone(self, add, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_rows", lambda *args: 1 / 0)
            record = add(HELLO).record
        replay(record=record)
        record.refresh_from_db()
        assert (record.state, record.body, record.error) == ("stored", None, "")
        assert contents() == ["hello"]
        replay(record=record)
        assert contents() == ["hello"]

    def test_replay_of_a_partial_request_adds_what_was_not_understood_and_nothing_twice(
        self, add, monkeypatch
    ):
        messages = [RULES, HELLO, {"role": "narrator", "content": "Night falls."}, HI]
        record = add(*messages).record
        assert replay(record=record).state == "partial"
        assert contents() == ["hello", "hi"]

        extract = storage.extract
        monkeypatch.setattr(
            storage,
            "extract",
            lambda messages, **known: extract(
                [m | {"role": m["role"].replace("narrator", "user")} for m in messages], **known
            ),
        )
        replay(record=record)
        record.refresh_from_db()
        assert contents() == ["hello", "hi", "Night falls."]
        assert (record.state, record.body) == ("stored", None)
        assert record.report == {
            "stored": 3,
            "truncated": 0,
            "duplicate": 0,
            "skipped": [{"index": 0, "reason": "system message"}],
            "omitted": {},
            "roles": {"user": 2, "assistant": 1},
        }

    def test_a_result_without_an_id_finds_its_tool_in_an_earlier_request(self, add):
        add({"role": "assistant", "tool_calls": [{"function": {"name": "pay", "arguments": "{}"}}]})
        add({"role": "tool", "content": "paid"})
        assert ConversationMessage.objects.get(seq=2).tool_name == "pay"

    CALLS = ({"function": {"name": name, "arguments": "{}"}} for name in ("pay", "ship", "pay"))
    BOTH = {"role": "assistant", "tool_calls": list(CALLS)}

    @staticmethod
    def result(text: str, **more: Any) -> dict[str, Any]:
        return {"role": "tool", "content": text} | more

    @pytest.mark.parametrize("at_once", [True, False])
    def test_results_without_ids_answer_several_calls_in_their_order(self, add, at_once):
        results = [
            self.result("paid"),
            self.result("shipped"),
            self.result("paid again"),
            self.result("what"),
        ]
        add(self.BOTH)
        for request in [results] if at_once else [[result] for result in results]:
            add(*request, history="delta")
        assert contents()[1:] == ["[pay] paid", "[ship] shipped", "[pay] paid again", "[tool] what"]

    def test_a_result_with_a_name_leaves_the_other_calls_open(self, add):
        add(self.BOTH)
        add(self.result("shipped", name="ship"))
        add(self.result("paid"), self.result("paid again"))
        assert contents()[1:] == ["[ship] shipped", "[pay] paid", "[pay] paid again"]

    def test_an_open_call_keeps_its_id(self, add):
        calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("pay", "ship")]
        add({"role": "assistant", "tool_calls": calls})
        add(self.result("shipped", tool_call_id="ship"))
        add(self.result("paid"))
        turn = ConversationMessage.objects.get(seq=3)
        assert (turn.tool_name, turn.tool_call_id) == ("pay", "pay")

    @pytest.mark.parametrize("before", [{"tool_call_id": "strange"}, {"name": "other"}])
    def test_where_a_result_fits_no_call_no_name_is_invented(self, add, before):
        add(self.BOTH)
        add(self.result("?", **before))
        add(self.result("paid"))
        assert contents()[2] == "[tool] paid"

    def test_a_failure_to_seal_costs_nothing(self, add, monkeypatch):
        def fail(**kwargs: Any) -> None:
            raise DatabaseError("no")

        monkeypatch.setattr(intake, "seal_sessions", fail)
        assert add(HELLO).answer["turns"]["stored"] == 1


class TestQueue:
    def test_the_job_is_part_of_the_transaction_and_carries_the_id_alone(self, add):
        accepted = add(HELLO, wait=False)
        assert accepted.answer == {
            "success": True,
            "message": "Accepted. The turns are stored by the worker.",
            "status": "queued",
            "message_count": 1,
            "intake_id": accepted.record.pk,
            "session": {"session_id": "s-1", "state": "open", "turn_count": 0},
            "turns": None,
        }
        job = ProcrastinateJob.objects.get()
        assert (job.task_name, job.queue_name) == ("conversations.store_turns", "intake")
        assert job.args == {"intake_id": accepted.record.pk}
        assert accepted.record.state == "queued"

    def test_without_session_id_there_is_no_job(self, add):
        assert add(HELLO, session_id="", wait=False).answer["status"] == "queued"
        assert not ProcrastinateJob.objects.exists()

    def test_the_worker_stores_it_once(self, add):
        pk = add(RULES, HELLO, wait=False).record.pk
        assert store_queued(intake_id=pk).state == "stored"
        assert store_queued(intake_id=pk) is None
        assert contents() == ["hello"]
        record = IntakeRecord.objects.get(pk=pk)
        assert (record.body, record.report["stored"]) == (None, 1)

    def test_an_unknown_id_is_nothing_to_do(self, db):
        assert store_queued(intake_id="intake-gone") is None

    def test_requests_of_one_session_are_stored_in_the_order_of_their_acceptance(self, add):
        first, second, third = (add(m, wait=False).record for m in (HELLO, HI, BYE))
        store_queued(intake_id=third.pk)
        assert contents() == ["hello", "hi", "bye"]
        assert store_queued(intake_id=first.pk) is None
        assert store_queued(intake_id=second.pk) is None

    def test_an_add_that_waits_comes_after_those_that_are_queued(self, add):
        add(HELLO, wait=False)
        assert add(HI).answer["session"]["turn_count"] == 2
        assert contents() == ["hello", "hi"]

    def test_an_earlier_request_that_fails_does_not_hold_up_the_next(self, add, monkeypatch):
        bad = add(HELLO, wait=False).record
        store = storage._store

        def fail_first(record, *args: Any) -> None:
            if record.pk == bad.pk:
                raise ValueError("bad")
            store(record, *args)

        monkeypatch.setattr(storage, "_store", fail_first)
        add(HI)
        bad.refresh_from_db()
        assert (bad.state, bad.error, bad.body) == ("failed", "ValueError: bad", {"messages": [HELLO]})
        assert contents() == ["hi"]

    def test_passing_trouble_of_the_database_leaves_it_queued(self, add, monkeypatch):
        record = add(HELLO, wait=False).record
        with monkeypatch.context() as patch:

            def fail(*args: Any) -> None:
                raise OperationalError("server closed the connection")

            patch.setattr(storage, "_rows", fail)
            with pytest.raises(OperationalError):
                store_queued(intake_id=record.pk)
        record.refresh_from_db()
        assert record.state == "queued"

    def test_requests_whose_job_was_lost_are_taken_over(self, add, settings):
        record = add(HELLO, wait=False).record
        settings.MIRIX_WORKER_STALLED_SECONDS = 60
        assert intake.store_overdue() == 0
        settings.MIRIX_WORKER_STALLED_SECONDS = -1
        assert intake.store_overdue() == 1
        record.refresh_from_db()
        assert record.state == "stored"
        assert intake.store_overdue() == 0

    def test_both_roads_lead_to_the_same_hash(self, add):
        message = {"role": "tool", "name": "f", "content": {"b": 1e22, "a": 2.0, "c": 0.1, "d": -0.0}}
        add(message)
        store_queued(intake_id=add(message, session_id="s-2", wait=False).record.pk)
        first, second = ConversationMessage.objects.values_list("content_hash", flat=True)
        assert first == second


class TestEnvelope:
    @pytest.mark.parametrize("session_id", ["a b", "a" * 65, "s-1\n", "ä", "a/b", "\x00"])
    def test_a_bad_session_id_is_named(self, session_id):
        with pytest.raises(ValidationError) as error:
            checked(messages=[HELLO], session_id=session_id)
        assert list(error.value.message_dict) == ["session_id"]

    @pytest.mark.parametrize(
        ("fields", "named"),
        [
            ({"messages": []}, "messages"),
            ({"session_tag": "chat"}, "session_tag"),
            ({"history": "half"}, "history"),
            ({"session_id": "s-1", "filter_tags": {"session_id": "s-2"}}, "filter_tags"),
            ({"filter_tags": {"a": "x" * 20_000}}, "filter_tags"),
        ],
    )
    def test_every_bad_field_is_named(self, fields, named):
        with pytest.raises(ValidationError) as error:
            checked(**({"messages": [HELLO]} | fields))
        assert list(error.value.message_dict) == [named]

    def test_the_session_may_stand_in_the_tags_too(self):
        envelope = checked(messages=[HELLO], session_id="s-1", filter_tags={"session_id": "s-1"})
        assert envelope.filter_tags == {"session_id": "s-1"}
