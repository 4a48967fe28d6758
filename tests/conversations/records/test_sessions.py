"""Sessions out of sources of every layout."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.records import Fault, Reader, Record, fitting_session_id
from conversations.records.names import MESSAGES, RECORD_IDS, SESSION_IDS, WRAPPERS

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}
BYE = {"role": "user", "content": "bye"}


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def read(
    data: bytes, name: str = "logs/a.jsonl", limit: int = 1_000_000
) -> tuple[str, list[Record], list[Fault]]:
    """What a source was taken for, its sessions, and what is wrong with it."""
    reader = Reader(BytesIO(data), name=name, limit=limit)
    found = list(reader)
    sessions = [item for item in found if isinstance(item, Record)]
    return reader.taken_for, sessions, [item for item in found if isinstance(item, Fault)]


def sessions(data: bytes, **options: Any) -> dict[str, list[Any]]:
    """Messages by session id; nothing may be wrong."""
    _, found, faults = read(data, **options)
    assert faults == []
    return {session.session_id: session.messages for session in found}


class TestRecords:
    @pytest.mark.parametrize("session_id", RECORD_IDS)
    @pytest.mark.parametrize("messages", MESSAGES)
    def test_under_every_name(self, session_id, messages):
        assert sessions(lines({session_id: "s-1", messages: [HELLO, HI]})) == {"s-1": [HELLO, HI]}

    @pytest.mark.parametrize("wrapper", WRAPPERS)
    def test_one_level_deeper(self, wrapper):
        assert sessions(lines({"source": "x", wrapper: {"id": "s-1", "messages": [HELLO]}})) == {
            "s-1": [HELLO]
        }
        assert sessions(lines({"session_id": "s-1", wrapper: {"messages": [HELLO]}})) == {"s-1": [HELLO]}
        assert sessions(lines({"session_id": "s-1", wrapper: [HELLO, HI]})) == {"s-1": [HELLO, HI]}

    def test_the_first_name_with_something_in_it_counts(self):
        record = {"id": "x", "session_id": "s-1", "input": [HELLO], "messages": [], "history": [HI]}
        assert sessions(lines(record)) == {"s-1": [HELLO]}

    def test_a_number_is_an_id(self):
        assert sessions(lines({"id": 7, "messages": [HELLO]})) == {"7": [HELLO]}

    def test_the_reply_beside_a_request_belongs_to_it(self):
        reply = {"choices": [{"message": HI}]}
        record = {"session_id": "s", "request": {"messages": [HELLO]}, "response": reply}
        assert sessions(lines(record)) == {"s": [HELLO, reply]}

    def test_fields_for_the_session(self):
        fields = {"session_tag": "conversation", "filter_tags": {"a": 1}, "occurred_at": "2026-01-01"}
        [session] = read(lines({"id": "s", "messages": [HELLO]} | fields))[1]
        assert (session.session_tag, session.filter_tags, session.occurred_at) == tuple(fields.values())
        assert not session.is_dated_loosely

    @pytest.mark.parametrize("name", ["timestamp", "created_at", "startTime"])
    def test_when_it_happened_under_other_names(self, name):
        [session] = read(lines({"id": "s", "messages": [HELLO], name: "2026-01-01"}))[1]
        assert (session.occurred_at, session.is_dated_loosely) == ("2026-01-01", True)


class TestLayouts:
    def test_a_session_a_line(self):
        taken_for, found, _ = read(lines({"id": "a", "messages": [HELLO]}, {"id": "b", "messages": [HI]}))
        assert taken_for == "JSON Lines, a session a record, openai chat"
        assert [(session.session_id, session.line) for session in found] == [("a", 1), ("b", 2)]

    def test_one_session(self):
        taken_for, [session], _ = read(json.dumps({"id": "a", "messages": [HELLO]}, indent=1).encode())
        assert (taken_for, session.session_id) == ("JSON, one session, openai chat", "a")

    def test_a_list_of_sessions(self):
        data = json.dumps([{"id": "a", "messages": [HELLO]}, {"id": "b", "messages": [HI]}]).encode()
        assert read(data)[0] == "JSON, a session a record, openai chat"
        assert sessions(data) == {"a": [HELLO], "b": [HI]}

    @pytest.mark.parametrize("indent", [None, 2])
    def test_a_list_of_messages(self, indent):
        taken_for, [session], _ = read(json.dumps([HELLO, HI], indent=indent).encode())
        assert (taken_for, session.messages) == ("JSON, a list of messages, openai chat", [HELLO, HI])

    def test_a_message_a_line(self):
        taken_for, [session], _ = read(lines(HELLO, HI))
        assert (taken_for, session.messages) == ("JSON Lines, a list of messages, openai chat", [HELLO, HI])

    def test_a_list_of_messages_a_line(self):
        _, found, _ = read(lines([HELLO], [HI, BYE]))
        assert [session.messages for session in found] == [[HELLO], [HI, BYE]]

    def test_a_recorded_client_is_one_session(self):
        calls = [["client.create", {}], ["client.stream", {"type": "user.message", "content": "hello"}]]
        assert list(sessions(json.dumps(calls).encode()).values()) == [calls]

    def test_nothing(self):
        assert read(b"")[1:] == ([], [])

    @pytest.mark.parametrize("name", ["data", "conversations", "history", "response"])
    def test_an_export_that_lists_sessions(self, name):
        listed = [{"session_id": "a", "messages": [HELLO]}, {"session_id": "b", "messages": [HI]}]
        assert sessions(lines({name: listed, "total": 2})) == {"a": [HELLO], "b": [HI]}
        assert sessions(lines({name: listed[:1], "total": 1})) == {"a": [HELLO]}
        assert sessions(lines(listed, [BYE | {"session_id": "x"}]))["b"] == [HI]

    def test_what_is_broken_in_an_export_is_a_fault_of_its_own(self):
        listed = [{"session_id": "a", "messages": [HELLO]}, {"session_id": "b", "messages": "x"}]
        _, [session], [fault] = read(lines({"data": listed}))
        assert (session.session_id, fault.reason) == ("a", "messages: must be a list, not a string")


class TestNames:
    def test_a_session_without_an_id_is_called_after_its_file_and_place(self):
        _, found, _ = read(lines({"messages": [HELLO]}, {"id": "x", "messages": [HI]}, {"messages": [BYE]}))
        assert [session.session_id for session in found] == [
            fitting_session_id("logs/a.jsonl-1"),
            "x",
            fitting_session_id("logs/a.jsonl-3"),
        ]
        assert [session.is_unnamed for session in found] == [True, False, True]
        assert found[0].session_id.startswith("logs-a-jsonl-1-")

    def test_single_messages_are_called_after_their_file(self):
        assert list(sessions(lines(HELLO, HI))) == [fitting_session_id("logs/a.jsonl")]

    def test_without_a_file_after_their_first_message(self):
        [name] = sessions(lines(HELLO, HI), name="")
        assert [name] == list(sessions(lines(HELLO), name=""))
        assert [name] != list(sessions(lines(HI), name=""))
        assert fitting_session_id(name) == name

    @given(st.text(max_size=80))
    def test_a_name_fits_and_stays(self, raw):
        name = fitting_session_id(raw)
        assert fitting_session_id(name) == name


class TestLogs:
    def line(self, text: str, session_id: str | None = "s-1", **fields: Any) -> dict[str, Any]:
        line = {"type": "user", "message": {"role": "user", "content": text}, "uuid": text} | fields
        return line | ({"sessionId": session_id} if session_id else {})

    def test_lines_are_put_together_by_their_session(self):
        a1, b1, a2 = self.line("1", "a"), self.line("2", "b"), self.line("3", "a")
        taken_for, found, _ = read(lines(a1, b1, a2))
        assert taken_for == "JSON Lines, a log of 2 sessions, coding log"
        assert [(session.session_id, session.messages) for session in found] == [("a", [a1, a2]), ("b", [b1])]

    @pytest.mark.parametrize("name", SESSION_IDS)
    def test_messages_too_that_name_a_session(self, name):
        a1, b1, a2 = HELLO | {name: "a"}, HELLO | {name: "b"}, BYE | {name: "a"}
        assert sessions(lines(a1, b1, a2)) == {"a": [a1, a2], "b": [b1]}

    def test_lines_without_a_session_belong_to_the_one_before_and_the_first_to_the_next(self):
        summary = {"type": "summary", "summary": "x", "leafUuid": "u"}
        snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}
        a, b = self.line("1", "a"), self.line("2", "b")
        found = sessions(lines(summary, a, snapshot, b, "lost", 5, {"odd": 1}))
        assert found == {"a": [summary, a, snapshot], "b": [b, "lost", 5, {"odd": 1}]}

    def test_the_talk_of_a_helper_is_a_session_of_its_own(self):
        main, helper = self.line("1"), self.line("2", isSidechain=True, agentId="h1")
        nameless, after = self.line("3", isSidechain=True), self.line("4", None)
        assert sessions(lines(main, helper, nameless, after)) == {
            "s-1": [main, after],
            "s-1/h1": [helper],
            "s-1/sidechain": [nameless],
        }

    @pytest.mark.parametrize(
        "header",
        [
            {"type": "session_meta", "payload": {"id": "s-1"}},
            {"type": "session", "version": 3, "id": "s-1", "parentId": None},
            {"type": "session.start", "data": {"sessionId": "s-1"}, "id": "e"},
            {"type": "thread.started", "thread_id": "s-1"},
        ],
    )
    def test_a_header_names_the_session(self, header):
        item = {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}}
        assert sessions(lines(header, item)) == {"s-1": [header, item]}

    def test_when_it_happened_is_the_first_time_of_a_session(self):
        a1, a2 = self.line("1", timestamp="2026-01-02"), self.line("2", timestamp="2026-01-03")
        [session] = read(lines(a1, a2))[1]
        assert (session.occurred_at, session.is_dated_loosely, session.line) == ("2026-01-02", True, 1)

    def test_more_than_fits_into_memory_waits_on_disk(self, monkeypatch):
        monkeypatch.setattr("conversations.records.sessions.IN_MEMORY", 100)
        rows = [self.line(str(number), "ab"[number % 2]) for number in range(100)]
        assert sessions(lines(*rows)) == {"a": rows[::2], "b": rows[1::2]}

    def test_records_between_lines_are_sessions(self):
        assert sessions(lines(self.line("1", "a"), {"id": "r", "messages": [HELLO]})) == {
            "r": [HELLO],
            "a": [self.line("1", "a")],
        }


class TestRuns:
    def run(self, run_id: str, trace: str, **fields: Any) -> dict[str, Any]:
        return {
            "id": run_id,
            "trace_id": trace,
            "dotted_order": run_id,
            "run_type": "llm",
            "inputs": {},
        } | fields

    def test_the_runs_of_a_trace_are_one_message(self):
        a1, b1, a2 = self.run("1", "a"), self.run("2", "b"), self.run("3", "a")
        assert sessions(lines(a1, b1, a2)) == {"a": [{"runs": [a1, a2]}], "b": [b1]}

    def test_pieces_of_runs_as_they_were_sent(self):
        begun, ended = self.run("1", "a"), self.run("1", "a", outputs={"x": 1})
        assert sessions(lines({"post": [begun]}, {"patch": [ended]})) == {"a": [{"runs": [begun, ended]}]}

    def test_a_thread_keeps_traces_together_and_the_project_does_not(self):
        thread = {"metadata": {"thread_id": "talk"}}
        a, b = self.run("1", "a", extra=thread), self.run("2", "b", extra=thread)
        assert sessions(lines(a, b)) == {"talk": [{"runs": [a, b]}]}
        c, d = self.run("3", "c", session_id="project"), self.run("4", "d", session_id="project")
        assert sessions(lines(c, d)) == {"c": [c], "d": [d]}


class TestFaults:
    def test_each_broken_value_is_named_with_its_line(self):
        data = lines({"id": "a", "messages": [HELLO]}, {"session_id": "b", "messages": "x"}, []) + b"{\n"
        _, found, faults = read(data)
        assert len(found) == 1
        assert [fault.line for fault in faults] == [2, 3, 4]
        assert [fault.reason.split(",")[0] for fault in faults] == [
            "messages: must be a list",
            "expected a session",
            "not valid JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)",
        ]

    def test_a_source_without_any_session_is_one_fault(self):
        taken_for, found, faults = read(lines(*({"_id": n, "title": "x"} for n in range(1_000))))
        assert (taken_for, found) == ("JSON Lines, no transcript", [])
        assert faults == [
            Fault(
                line=0,
                reason="no transcript: expected a session, which is an object with messages, or a message, "
                "got an object with “_id”, “title”",
            )
        ]

    def test_a_session_beyond_the_limit_is_refused_and_the_others_are_not(self):
        rows = [HELLO | {"session_id": "big", "content": "x" * 500} for _ in range(10)]
        _, found, faults = read(lines(*rows, HELLO | {"session_id": "small"}), limit=2_000)
        assert [session.session_id for session in found] == ["small"]
        assert faults == [
            Fault(line=1, reason="session big: larger than 0.002 MB, the limit for one session")
        ]

    @given(st.binary(max_size=200))
    def test_whatever_comes_is_dealt_with(self, data):
        read(data)
