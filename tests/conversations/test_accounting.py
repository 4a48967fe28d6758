"""Every message is accounted for, every text is stored clean, by both roads; bodies are kept exactly."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from conversations import storage
from conversations.intake import Accepted, replay, store_queued
from conversations.models import ConversationMessage, IntakeRecord, Session
from tests.conversations.turns import BYE, HELLO, HI, RULES, contents

LONG = "ä" * 70_000
DECOMPOSED = unicodedata.normalize("NFD", "Müller")


@pytest.fixture(params=["at once", "by the worker"])
def send(add, request):
    """Add by one of the two roads; what is returned is the record as the database has it then."""

    def send(*messages: Any, **fields: Any) -> IntakeRecord:
        accepted: Accepted = add(*messages, wait=request.param == "at once", **fields)
        if request.param == "by the worker":
            store_queued(intake_id=accepted.record.pk)
        return IntakeRecord.objects.get(pk=accepted.record.pk)

    return send


class TestText:
    def test_nul_goes_surrogates_are_replaced_and_letters_composed(self, send):
        send({"role": "user", "content": f"a\x00b \ud800 {DECOMPOSED}"})
        assert contents() == ["ab \ufffd Müller"]

    def test_it_is_capped_with_a_marker_and_a_flag(self, send):
        report = send({"role": "user", "content": LONG}, HI).report
        long, short = ConversationMessage.objects.order_by("seq")
        assert (len(long.content), long.truncated) == (65_536, True)
        assert long.content.endswith("ä… [truncated, 70000 characters in all]")
        assert (short.content, short.truncated) == ("hi", False)
        assert (report["stored"], report["truncated"]) == (2, 1)

    def test_keys_of_calls_are_cleaned_too(self, send):
        arguments = {f"{DECOMPOSED}\x00": "\x00", "\udfff": 1}
        call = {"id": "c\x001", "function": {"name": "p\x00ay", "arguments": arguments}}
        send({"role": "assistant", "content": None, "tool_calls": [call]})
        turn = ConversationMessage.objects.get()
        assert turn.tool_calls == [{"id": "c1", "name": "pay", "arguments": {"Müller": "", "\ufffd": 1}}]
        assert turn.content == '[call pay] {"Müller": "", "\ufffd": 1}'

    def test_tags_are_cleaned_keys_too(self, send):
        send(HELLO, filter_tags={f"{DECOMPOSED}\x00": ["\ud800"]})
        assert Session.objects.get().filter_tags == {"Müller": ["\ufffd"]}


class TestLedger:
    def test_each_index_is_a_turn_or_a_named_reason(self, send):
        strange = {"role": "narrator", "content": "Night falls."}
        record = send(RULES, HELLO, 7, {"role": "user", "content": None}, strange, HI)
        assert record.state == "partial"
        assert record.report["stored"] == 2
        skipped = {item["index"]: item for item in record.report["skipped"]}
        assert list(skipped) == [0, 2, 3, 4]
        assert skipped[0] == {"index": 0, "reason": "system message"}
        assert skipped[3] == {"index": 3, "reason": "empty message"}
        assert skipped[2]["unreadable"] is skipped[4]["unreadable"] is True
        assert "a number" in skipped[2]["reason"]
        assert "narrator" in skipped[4]["reason"]

    def test_the_body_is_kept_exactly_while_something_is_not_stored(self, send):
        strange = {"z": 1, "role": "narrator", "n": [1, 2.50, 1e22, None, True, {"deep": "é", "a": []}]}
        body = {"messages": [strange, HELLO, "odd"]}
        assert json.dumps(send(strange, HELLO, "odd").body) == json.dumps(body)  # the order of keys, too

    def test_and_dropped_when_all_is_stored(self, send):
        assert send(RULES, HELLO).body is None

    def test_a_failure_of_the_last_write_leaves_body_and_reason_and_can_be_replayed(self, send, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(storage, "_report", lambda *args: {"stored": {1, 2}})  # no JSON: the save fails
            record = send(HELLO, HI)
        assert (record.state, record.report) == ("failed", None)
        assert record.error.startswith("TypeError: ")
        assert record.body == {"messages": [HELLO, HI]}
        assert not ConversationMessage.objects.exists()
        replay(record=record)
        assert contents() == ["hello", "hi"]

    def test_what_the_database_refuses_while_rows_are_inserted_is_written_down(self, send, monkeypatch):
        rows = storage._rows
        monkeypatch.setattr(
            storage, "_rows", lambda *args: [row | {"seq": "no number"} for row in rows(*args)]
        )
        record = send(HELLO)
        assert (record.state, record.body) == ("failed", {"messages": [HELLO]})
        assert record.error.startswith("DataError: invalid input syntax for type integer")
        assert not ConversationMessage.objects.exists()

    def test_the_answer_to_a_failure_of_the_last_write_names_no_turn(self, add, monkeypatch):
        monkeypatch.setattr(storage, "_report", lambda *args: {"stored": {1, 2}})
        answer = add(HELLO).answer
        assert (answer["session"]["state"], answer["turns"]) == ("missed", None)


class TestHistoryByBothRoads:
    def test_a_repeated_history_adds_its_tail(self, send):
        send(RULES, HELLO, HI)
        assert send(RULES, HELLO, HI, BYE).report["stored"] == 1
        assert contents() == ["hello", "hi", "bye"]

    def test_a_client_that_says_ok_twice_keeps_both(self, send):
        ok = {"role": "user", "content": "ok"}
        for _ in range(4):
            send(ok)
        assert contents() == ["ok"] * 4
        send(ok, ok)
        assert contents() == ["ok"] * 6
