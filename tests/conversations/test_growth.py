"""Messages that come again and say more: what is new is stored, once, and nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import storage
from conversations.extraction import Turn, extract
from conversations.growth import missing
from conversations.intake import replay, store_queued
from conversations.models import ConversationMessage, IntakeRecord
from tests.conversations.turns import BYE, HELLO, contents

CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {"n": 1e22}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
LATER = {"type": "tool_use", "id": "t2", "name": "g", "input": {}}
CALLED = '[call f] {"n": 1e+22}'
STATES: dict[str, list[list[Any]]] = {
    "a word": [["Hel"], ["Hello"], ["Hello world"]],
    "lines": [["one"], ["one", "two"], ["one", "two\nthree"]],
    "a call": [["one"], ["one", CALL]],
    "a second call": [[CALL], [CALL, LATER]],
    "a result": [[CALL], [CALL, RESULT]],
    "words after the result": [[CALL], [CALL, RESULT, "so"], [CALL, RESULT, "so it is"]],
    "words before the call": [
        ["one", CALL],
        ["one two", "three", CALL],
        ["one two", "three", "four", CALL, LATER],
    ],
}
"""By what grows: the parts of a message, as it comes again and again."""
NEW = {
    "a word": ["Hel", "lo", " world"],
    "lines": ["one", "two", "three"],
    "a call": ["one", CALLED],
    "a second call": [CALLED, "[call g] {}"],
    "a result": [CALLED, "[f] done"],
    "words after the result": [CALLED, "[f] done", "so", " it is"],
    "words before the call": [f"one\n{CALLED}", " two\nthree", "four\n[call g] {}"],
}


def message(*parts: Any, message_id: str = "m1", role: str = "assistant") -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"id": message_id, "role": role, "content": content}


@pytest.fixture(params=["at once", "by the worker"])
def send(add, request) -> Callable[..., IntakeRecord]:
    def send(*messages: Any, **fields: Any) -> IntakeRecord:
        accepted = add(*messages, wait=request.param == "at once", **fields)
        if request.param == "by the worker":
            store_queued(intake_id=accepted.record.pk)
        return IntakeRecord.objects.get(pk=accepted.record.pk)

    return send


@pytest.fixture
def learns(monkeypatch) -> Callable[..., None]:
    """Have extraction read other messages than those that come, as it would once it knows more."""
    known = storage.extract

    def learns(*messages: Any) -> None:
        monkeypatch.setattr(storage, "extract", lambda _, *args, **more: known(list(messages), *args, **more))

    return learns


class TestGrowth:
    @pytest.mark.parametrize("grows", STATES)
    def test_what_is_new_is_stored_at_the_end_as_turns_of_the_message(self, send, grows):
        for parts in STATES[grows]:
            record = send(message(*parts), HELLO | {"id": "u1"})
            assert (record.state, record.body) == ("stored", None)
        turns = ConversationMessage.objects.filter(message_id="m1").order_by("seq")
        assert [turn.content for turn in turns] == NEW[grows]
        assert [turn.part for turn in turns] == list(range(len(turns)))

    @pytest.mark.parametrize("grows", STATES)
    def test_no_state_of_it_is_stored_again(self, send, grows):
        for parts in STATES[grows]:
            send(message(*parts))
        for parts in [*STATES[grows], *STATES[grows][::-1]]:
            record = send(message(*parts))
            assert (record.state, record.report["stored"], record.report["skipped"]) == ("stored", 0, [])
        assert contents() == NEW[grows]

    @pytest.mark.parametrize("grows", STATES)
    def test_a_state_in_between_that_comes_late_says_nothing_new(self, send, grows):
        send(message(*STATES[grows][-1]))
        before = contents()
        for parts in STATES[grows]:
            record = send(message(*parts))
            assert (record.state, record.report["stored"]) == ("stored", 0)
        assert contents() == before

    @pytest.mark.parametrize("grows", STATES)
    def test_it_may_grow_within_one_request_which_may_come_again(self, send, grows):
        states = [message(*parts) for parts in STATES[grows]]
        send(HELLO, *states, history="full")
        assert contents() == ["hello", *NEW[grows]]
        send(HELLO, *states, BYE, history="full")
        send(*states)
        assert contents() == ["hello", *NEW[grows], "bye"]

    def test_the_account_tells_what_is_new_and_what_was_there(self, send):
        send(message(CALL))
        report = send(message(CALL, RESULT, "so"), HELLO).report
        assert (report["stored"], report["duplicate"]) == (3, 1)
        assert report["roles"] == {"tool": 1, "assistant": 1, "user": 1}
        assert "duplicate_at" not in report

    @pytest.mark.parametrize("parts", [["two"], ["zero", "one"], [LATER], ["one", RESULT, CALL], []])
    def test_what_contradicts_is_skipped_and_kept(self, send, parts):
        send(message("one", CALL, RESULT))
        before = contents()
        changed = message(*parts) if parts else message("one", CALL, role="user")
        record = send(changed, BYE)
        reason = "its id is that of another message of the session, which is kept"
        assert record.report["skipped"] == [{"index": 0, "reason": reason, "unreadable": True}]
        assert (record.state, record.body, record.report["stored"]) == (
            "partial",
            {"messages": [changed, BYE]},
            1,
        )
        for _ in range(2):
            assert replay(record=record).state == "partial"
        assert contents() == [*before, "bye"]

    def test_a_replay_of_what_grew_meanwhile_adds_what_is_new(self, send):
        send(message("one"))
        record = send(message("two"))
        ConversationMessage.objects.filter(message_id="m1").delete()
        assert replay(record=record).state == "stored"
        assert contents() == ["two"]

    def test_where_a_part_was_pruned_nobody_can_tell(self, send):
        send(message("one", CALL, RESULT))
        ConversationMessage.objects.get(part=0).delete()
        assert send(message("one", CALL, RESULT, "so")).state == "partial"

    def test_a_cut_text_that_goes_on_is_kept(self, send):
        send(message("a" * 70_000))
        assert send(message("a" * 70_001)).state == "partial"
        assert ConversationMessage.objects.count() == 1


MYSTERY = {"type": "mystery", "blob": "words"}


class TestPartsNobodyCouldRead:
    @pytest.fixture(params=["m1", None])
    def partly(self, request) -> dict[str, Any]:
        return message("before", MYSTERY, "after", message_id=request.param)

    def test_what_is_readable_is_stored_and_the_request_kept(self, send, partly):
        record = send(HELLO, partly, BYE)
        assert (record.state, record.body) == ("partial", {"messages": [HELLO, partly, BYE]})
        assert (record.report["unread_at"], record.report["unread_turns"]) == ([[1, 1]], {"1": [[2, 2]]})
        assert (record.report["stored"], record.report["skipped"]) == (3, [])

    def test_a_replay_that_reads_no_more_changes_nothing(self, send, partly):
        record = send(HELLO, partly)
        report, before = record.report, contents()
        for _ in range(2):
            assert replay(record=record).state == "partial"
            assert (record.report, contents()) == (report, before)

    @pytest.mark.parametrize(
        ("learned", "new"),
        [
            (["words"], ["words"]),
            (["more\nwords"], ["more\nwords"]),
            ([CALL], [CALLED]),
            ([CALL, RESULT], [CALLED, "[f] done"]),
        ],
    )
    def test_a_replay_that_reads_it_adds_what_is_missing(self, send, partly, learns, learned, new):
        record = send(HELLO, partly, BYE)
        before = contents()
        learns(HELLO, message("before", *learned, "after", message_id=partly["id"]), BYE)
        for _ in range(2):
            replay(record=record)
            assert contents() == [*before, *new]
        assert (record.state, record.body, record.report["stored"]) == ("stored", None, 3 + len(new))
        assert record.report["duplicate"] == 0
        assert not record.report.keys() & {"unread_at", "unread_turns", "duplicate_at"}

    def test_one_part_after_the_other_may_become_known(self, send, partly, learns):
        other = {"type": "riddle", "blob": "answer"}
        partly["content"].append(other)
        record = send(partly)
        learns(message("before", "words", "after", other, message_id=partly["id"]))
        assert replay(record=record).state == "partial"
        assert record.report["unread_turns"] == {"0": [[1, 2]]}
        learns(message("before", "words", "after", "answer", message_id=partly["id"]))
        assert replay(record=record).state == "stored"
        assert contents()[1:] == ["words", "answer"]

    def test_what_reads_otherwise_by_now_stays_as_it_is(self, send, partly, learns):
        record = send(HELLO, partly)
        before = contents()
        learns(HELLO, message("quite", "another", message_id=partly["id"]))
        for _ in range(2):
            assert replay(record=record).state == "partial"
        assert (contents(), record.report["unread_at"], record.report["skipped"]) == (before, [[1, 1]], [])

    def test_without_its_turns_nobody_can_tell_what_is_missing(self, send, partly, learns):
        record = send(HELLO, partly)
        ConversationMessage.objects.get(seq=2).delete()
        learns(HELLO, message("before", "words", "after", message_id=partly["id"]))
        assert replay(record=record).state == "partial"
        assert contents() == ["hello"]

    def test_what_another_request_brought_meanwhile_is_not_added_again(self, send, learns):
        partly = message("before", MYSTERY, "after")
        record = send(partly)
        whole = message("before", "words", "after")
        send(whole)
        learns(whole)
        replay(record=record)
        assert contents()[1:] == ["words"]
        assert record.state == "stored"


parts = st.lists(
    st.one_of(st.sampled_from(["a", "b", "ab", "a\nb"]), st.sampled_from([CALL, LATER, RESULT])), max_size=6
)


def turns(found: list[Any]) -> list[Turn]:
    return extract([message(*found)]).turns


def said(found: list[Turn]) -> list[str]:
    lines = (line for turn in found for line in turn.content.split("\n"))
    return sorted(line for line in lines if line.strip())


@given(parts, parts)
def test_a_message_with_more_parts_is_stored_once_as_a_whole(first, more):
    stored, whole = turns(first), turns([*first, *more])
    new = missing(stored, whole)
    assert new is not None
    assert said([*stored, *new]) == said(whole)
    assert missing([*stored, *new], whole) == []
    assert missing(whole, stored) == []


@given(parts, parts)
def test_whatever_comes_nothing_is_missing_once_it_is_stored(one, other):
    stored, now = turns(one), turns(other)
    new = missing(stored, now)
    if new:
        assert missing([*stored, *new], now) == []
