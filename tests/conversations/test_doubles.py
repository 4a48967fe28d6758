"""Doubles: by idempotency key, by message id, by history, by importing again. Nothing is stored twice."""

from __future__ import annotations

from typing import Any

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations import storage
from conversations.envelope import checked
from conversations.intake import Accepted, KeyReused, accept, import_session, store_queued
from conversations.models import ConversationMessage, IntakeRecord, Session
from tests.conversations.turns import BYE, HELLO, HI, RULES, contents
from tests.factories import make_client


class TestDoubles:
    def test_a_key_that_comes_again_gets_the_first_answer_and_writes_nothing(self, add):
        first = add(HELLO, key="k")
        add(HI)
        again = add(HELLO, key="k")
        assert again.is_replay
        assert again.answer == first.answer
        assert again.record == first.record
        assert contents() == ["hello", "hi"]
        assert IntakeRecord.objects.count() == 2

    def test_a_queued_request_that_comes_again_is_still_told_what_it_was_told(self, add):
        first = add(HELLO, key="k", wait=False)
        store_queued(intake_id=first.record.pk)
        assert add(HELLO, key="k", wait=False).answer == first.answer
        assert ProcrastinateJob.objects.count() == 1

    @pytest.mark.parametrize(
        "change",
        [{"session_id": "s-2"}, {"filter_tags": {"a": 1}}, {"history": "full"}, {"session_tag": "task"}],
    )
    def test_a_key_with_another_body_is_refused(self, add, change):
        add(HELLO, key="k")
        with pytest.raises(KeyReused):
            add(HELLO, key="k", **change)
        with pytest.raises(KeyReused):
            add(BYE, key="k")
        assert IntakeRecord.objects.count() == 1

    def test_two_clients_may_use_the_same_key(self, add, owner):
        add(HELLO, key="k")
        accept(
            client=make_client(owner.organization),
            owner=owner,
            envelope=checked(messages=[BYE], session_id="s-1"),
            wait=True,
            idempotency_key="k",
        )
        assert contents() == ["hello", "bye"]

    def test_a_message_id_is_stored_once_in_its_session(self, add):
        add(HELLO | {"id": "m1"}, HI | {"id": "m2"})
        answer = add(HI | {"id": "m2"}, BYE | {"id": "m3"}, BYE | {"id": "m3"}).answer
        assert (answer["turns"]["stored"], answer["turns"]["duplicate"]) == (1, 2)
        assert contents() == ["hello", "hi", "bye"]
        add(HELLO | {"id": "m1"}, session_id="s-2")
        assert contents("s-2") == ["hello"]

    def test_a_message_with_the_id_of_another_is_skipped_with_the_reason(self, add):
        add(HELLO | {"id": "m1"}, HI | {"id": "m2"})
        accepted = add(HELLO | {"id": "m1"}, BYE | {"id": "m2"}, BYE | {"id": "m3"}, HI | {"id": "m3"})
        reason = "its id is that of another message of the session, which is kept"
        report = {
            "stored": 1,
            "truncated": 0,
            "duplicate": 1,
            "skipped": [{"index": index, "reason": reason, "unreadable": True} for index in (1, 3)],
            "omitted": {},
            "roles": {"user": 1},
            "duplicate_at": [[0, 0]],
        }
        assert accepted.answer["turns"] == report
        assert accepted.record.report == report
        assert (accepted.record.state, accepted.record.body is None) == ("partial", False)
        assert contents() == ["hello", "hi", "bye"]

    def test_a_reused_id_of_a_queued_request_is_told_by_its_record(self, add):
        add(HELLO | {"id": "m1"})
        record = add(HI | {"id": "m1"}, wait=False).record
        store_queued(intake_id=record.pk)
        record.refresh_from_db()
        assert (record.report["stored"], record.report["duplicate"]) == (0, 0)
        assert [item["index"] for item in record.report["skipped"]] == [0]

    def test_duplicates_alone_leave_the_session_sealed(self, add):
        add(HELLO | {"id": "m1"})
        Session.objects.update(state="sealed")
        assert add(HELLO | {"id": "m1"}).answer["session"]["state"] == "sealed"


class TestHistory:
    def test_full_adds_the_tail_only(self, add):
        add(RULES, HELLO, HI, history="full")
        answer = add(RULES, HELLO, HI, BYE, history="full").answer
        assert (answer["turns"]["stored"], answer["turns"]["duplicate"]) == (1, 2)
        assert contents() == ["hello", "hi", "bye"]

    def test_full_of_what_is_stored_already_adds_nothing(self, add):
        add(HELLO, HI, history="full")
        assert add(HELLO, HI, history="full").answer["turns"]["stored"] == 0
        assert add(HELLO, history="full").answer["turns"]["stored"] == 0
        assert contents() == ["hello", "hi"]

    @pytest.mark.parametrize("messages", [[BYE, HI, HELLO], [BYE], [HELLO, BYE]])
    def test_full_that_begins_otherwise_is_missed_with_the_reason(self, add, messages):
        add(HELLO, HI)
        accepted = add(*messages, history="full")
        assert accepted.answer["session"]["state"] == "missed"
        assert accepted.answer["session"]["reason"] == (
            "history is “full”, but the 2 stored turns of the session are not what the request begins with"
        )
        assert accepted.record.state == "failed"
        assert contents() == ["hello", "hi"]

    def test_delta_means_that_everything_is_new(self, add):
        add(HELLO, HI, history="delta")
        add(HELLO, HI, BYE, history="delta")
        assert contents() == ["hello", "hi", "hello", "hi", "bye"]

    def test_a_longer_request_that_begins_with_the_session_is_detected(self, add):
        add(HELLO, HI)
        add(HELLO, HI, BYE)
        assert contents() == ["hello", "hi", "bye"]

    def test_a_client_that_says_ok_twice_keeps_both(self, add):
        add(HELLO)
        add(HELLO, HI)  # one stored turn is no evidence of a repeated history
        assert contents() == ["hello", "hello", "hi"]
        add(HELLO, HELLO, HI)  # nor is a request that brings nothing more
        assert contents() == ["hello", "hello", "hi", "hello", "hello", "hi"]

    @pytest.mark.parametrize("history", ["", "full"])
    def test_markers_of_a_transport_that_move_are_no_new_history(self, add, history):
        def cached(message: dict[str, Any]) -> dict[str, Any]:
            part = {"type": "text", "text": message["content"], "cache_control": {"type": "ephemeral"}}
            return message | {"content": [part]}

        add(HELLO, HI | {"refusal": None}, cached(BYE))
        answer = add(cached(HELLO), HI, BYE, cached(HELLO), history=history).answer
        assert (answer["turns"]["stored"], answer["turns"]["duplicate"]) == (1, 3)
        assert contents() == ["hello", "hi", "bye", "hello"]

    def test_detection_outlives_the_turns(self, add):
        add(HELLO, HI)
        ConversationMessage.objects.all().delete()
        add(HELLO, HI, BYE)
        assert contents() == ["bye"]
        assert ConversationMessage.objects.get().seq == 3


class TestImport:
    @pytest.fixture
    def load(self, owner, client_row):
        def load(*messages: Any, session_id: str = "s-1", **fields: Any) -> Accepted:
            return import_session(
                client=client_row, owner=owner, session_id=session_id, messages=list(messages), **fields
            )

        return load

    def test_an_imported_session_counts_as_sealed(self, load):
        load(HELLO, HI)
        session = Session.objects.get()
        assert (session.state, session.turn_count) == ("sealed", 2)
        assert session.closed_at is not None

    def test_it_may_be_left_open_and_closed_by_the_next_import(self, load):
        load(HELLO, HI, is_open=True)
        assert Session.objects.get().state == "open"
        load(HELLO, HI)
        assert Session.objects.get().state == "sealed"

    def test_importing_again_writes_nothing(self, load):
        load(HELLO, HI)
        assert load(HELLO, HI).is_replay
        assert (IntakeRecord.objects.count(), contents()) == (1, ["hello", "hi"])

    def test_a_grown_session_adds_its_tail_and_is_sealed_again(self, load):
        load(HELLO, HI)
        accepted = load(HELLO, HI, BYE)
        assert accepted.record.report["stored"] == 1
        assert contents() == ["hello", "hi", "bye"]
        assert Session.objects.get().state == "sealed"

    def test_what_failed_at_first_is_stored_by_the_next_import(self, load, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_rows", lambda *args: 1 / 0)
            assert load(HELLO).record.state == "failed"
        accepted = load(HELLO)
        assert (accepted.is_replay, accepted.record.state) == (False, "stored")
        assert Session.objects.get().state == "sealed"

    def test_a_session_that_goes_on_elsewhere_is_not_closed_by_an_old_record(self, load, add):
        load(HELLO, HI)
        add(BYE)
        load(HELLO, HI)
        assert Session.objects.get().state == "open"
