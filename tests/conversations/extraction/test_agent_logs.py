"""Logs and events of further agents."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason


def item(kind: str = "message", **fields: Any) -> dict[str, Any]:
    payload = {"type": kind, **fields}
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


class TestCodexLog:
    def test_what_is_said(self):
        said = item(role="user", content=[{"type": "input_text", "text": "hello"}])
        answered = item(role="assistant", content=[{"type": "output_text", "text": "hi"}])
        turns = extract([said, answered]).turns
        assert [(turn.role, turn.content) for turn in turns] == [("user", "hello"), ("assistant", "hi")]

    def test_a_call_and_its_result(self):
        call = item("function_call", name="shell", arguments='{"command": "ls"}', call_id="c1")
        turn = only(item("function_call_output", call_id="c1", output="a.txt"), call)
        assert (turn.content, turn.tool_name, turn.tool_call_id) == ("[shell] a.txt", "shell", "c1")

    @pytest.mark.parametrize(
        "text", ["<environment_context>x</environment_context>", "# AGENTS.md instructions for /x"]
    )
    def test_what_the_program_put_in_is_no_turn(self, text):
        assert reason(item(role="user", content=[{"type": "input_text", "text": text}])) == "system message"

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ({"type": "session_meta", "payload": {"id": "s"}}, "note of the program only"),
            ({"type": "event_msg", "payload": {"type": "user_message"}}, "event told elsewhere only"),
            ({"type": "compacted", "payload": {"message": "x"}}, "compact summary only"),
            (item("ghost_snapshot"), "note of the program only"),
            (item("reasoning", summary=[], encrypted_content="x"), "reasoning only"),
        ],
    )
    def test_the_rest(self, row, why):
        assert reason(row) == why


class TestPrintedEvents:
    def done(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": "item.completed", "item": {"id": "item_1", "type": kind, **fields}}

    def test_what_is_said(self):
        assert only(self.done("agent_message", text="done")).content == "done"

    def test_a_command(self):
        turns = extract(
            [self.done("command_execution", command="ls x", aggregated_output="none", exit_code=2)]
        ).turns
        assert [(turn.role, turn.content) for turn in turns] == [
            ("assistant", '[call shell] {"command": "ls x"}'),
            ("tool", "[shell] none"),
        ]
        assert turns[1].is_error

    def test_a_tool_of_a_server(self):
        result = {"content": [{"type": "text", "text": "sunny"}]}
        row = self.done("mcp_tool_call", server="w", tool="weather", arguments={"c": "Rome"}, result=result)
        assert [turn.content for turn in extract([row]).turns] == [
            '[call weather] {"c": "Rome"}',
            "[weather] sunny",
        ]

    def test_a_failed_change(self):
        turns = extract([self.done("file_change", changes=[{"path": "a"}], status="failed")]).turns
        assert turns[1].is_error

    @pytest.mark.parametrize("kind", ["thread.started", "turn.completed", "item.started", "item.updated"])
    def test_the_rest(self, kind):
        assert reason({"type": kind, "item": {"type": "agent_message", "text": "x"}}) == "event only"

    def test_an_unknown_item(self):
        assert extract([self.done("dance")]).skipped[0].unreadable


class TestEvents:
    def test_with_what_they_say_in_themselves(self):
        text = [{"type": "text", "text": "hello"}]
        events = [
            {"type": "user.message", "id": "e1", "content": text},
            {"type": "agent.mcp_tool_use", "id": "e2", "name": "search", "input": {"q": "x"}},
            {
                "type": "agent.mcp_tool_result",
                "id": "e3",
                "mcp_tool_use_id": "e2",
                "content": text,
                "is_error": True,
            },
            {"type": "user.tool_confirmation", "id": "e4", "result": "deny", "deny_message": "not allowed"},
            {"type": "agent.message", "id": "e5", "content": text},
        ]
        turns = extract(events).turns
        assert [(turn.role, turn.content) for turn in turns] == [
            ("user", "hello"),
            ("assistant", '[call search] {"q": "x"}'),
            ("tool", "[search] hello"),
            ("user", "not allowed"),
            ("assistant", "hello"),
        ]
        assert turns[2].is_error

    def test_with_what_they_say_as_data(self):
        request = {"toolCallId": "c1", "name": "view", "arguments": {"path": "a"}}
        events = [
            {"type": "user.message", "data": {"content": "look"}},
            {"type": "assistant.message", "data": {"content": "", "toolRequests": [request]}},
            {"type": "tool.execution_start", "data": {"toolCallId": "c1", "toolName": "view"}},
            {
                "type": "tool.execution_complete",
                "data": {"toolCallId": "c1", "success": False, "error": {"message": "not there"}},
            },
        ]
        extraction = extract(events)
        assert [turn.content for turn in extraction.turns] == [
            "look",
            '[call view] {"path": "a"}',
            "[view] not there",
        ]
        assert extraction.turns[2].is_error
        assert [item.reason for item in extraction.skipped] == ["event only"]

    @pytest.mark.parametrize(
        ("kind", "why"),
        [
            ("session.status_idle", "event only"),
            ("span.model_request_end", "event only"),
            ("agent.thinking", "reasoning only"),
            ("system.message", "system message"),
            ("user.tool_confirmation", "event only"),
        ],
    )
    def test_the_rest(self, kind, why):
        assert reason({"type": kind, "id": "e"}) == why

    def test_recorded_calls_of_a_client(self):
        said = {"type": "user.message", "id": "e1", "content": "hello"}
        sent = ["client.events.send", ["session", {"events": [said]}]]
        streamed = ["client.events.stream", said]
        assert reason(sent) == "call of the client only"
        turn = only(streamed)
        assert (turn.content, turn.message_id) == ("hello", "e1")

    @pytest.mark.parametrize("value", [["hello. you", {}], ["a.b"], ["a.b", 5], ["ab", {}], []])
    def test_other_lists_are_no_calls(self, value):
        assert extract([value]).skipped[0].unreadable


class TestTypedSpeech:
    def test_calls_and_their_results(self):
        response = {"id": "c1", "name": "read_file", "response": {"output": "text"}}
        calls = [
            {"id": "c1", "name": "read_file", "args": {"p": 1}, "result": [{"functionResponse": response}]},
            {"id": "c2", "name": "edit", "args": {}, "status": "error", "error": "no match", "result": []},
        ]
        message = {"type": "gemini", "content": "I read.", "toolCalls": calls, "thoughts": [{"subject": "x"}]}
        extraction = extract([message])
        assert [turn.content for turn in extraction.turns] == [
            'I read.\n[call read_file] {"p": 1}\n[call edit] {}',
            "[read_file] text",
            "[edit] no match",
        ]
        assert [turn.is_error for turn in extraction.turns] == [False, False, True]
        assert extraction.omitted == {"reasoning": 1}

    def test_the_user_and_notes(self):
        assert only({"type": "user", "content": "hello"}).role == "user"
        note = {"type": "info", "id": "1", "timestamp": "t", "content": "cancelled"}
        assert reason(note) == "note of the program only"
