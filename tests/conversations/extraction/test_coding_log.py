"""Lines of coding assistants' logs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason
from tests.data import records


def line(kind: str = "user", content: Any = "hello", **fields: Any) -> dict[str, Any]:
    about = {"uuid": "u-1", "parentUuid": None, "sessionId": "s", "isSidechain": False}
    return {"type": kind, "message": {"role": kind, "content": content}} | about | fields


def test_what_is_said():
    assert [(turn.role, turn.content) for turn in extract([line(), line("assistant")]).turns] == [
        ("user", "hello"),
        ("assistant", "hello"),
    ]


def test_a_call_and_its_failed_result():
    call = line("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}])
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}
    turn = only(line(content=[result], toolUseResult="Error: no such file"), call)
    assert (turn.content, turn.tool_name, turn.is_error) == ("[Bash] no such file", "Bash", True)


def test_a_sidechain_is_read_like_any_other():
    assert only(line("assistant", "done", isSidechain=True, agentId="a1")).content == "done"


def test_a_message_without_content_gives_what_its_tool_returned():
    broken = line(toolUseResult="File created") | {"message": {"role": "user"}}
    assert only(broken).content == "[tool] File created"


def test_a_message_that_is_plain_text():
    assert only(line() | {"message": "hello"}).content == "hello"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"isMeta": True}, "note of the program only"),
        ({"isCompactSummary": True}, "compact summary only"),
        ({"isApiErrorMessage": True}, "error of the model's service only"),
    ],
)
def test_what_the_program_wrote_is_no_turn(fields, why):
    assert reason(line(**fields)) == why


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"type": "summary", "summary": "Fix", "leafUuid": "u"}, "summary only"),
        ({"type": "system", "subtype": "compact_boundary", "content": "x", "uuid": "u"}, "system message"),
        ({"type": "progress", "uuid": "u", "data": {"type": "hook_progress"}}, "log line “progress” only"),
        (
            {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
            "log line “file-history-snapshot” only",
        ),
        ({"type": "queue-operation", "sessionId": "s", "content": "x"}, "log line “queue-operation” only"),
        ({"type": "attachment", "uuid": "u", "attachment": {"type": "todo_reminder"}}, "attachment only"),
        (
            {"type": "result", "subtype": "success", "result": "Done.", "session_id": "s"},
            "result of the run only",
        ),
    ],
)
def test_lines_about_the_session_are_no_turns(row, why):
    assert reason(row) == why


def test_what_was_typed_while_the_assistant_worked_is_a_turn():
    attachment = {"type": "queued_command", "prompt": "also the tests"}
    turn = only({"type": "attachment", "uuid": "u", "attachment": attachment})
    assert (turn.role, turn.content) == ("user", "also the tests")


def test_reminders_to_the_model_are_left_out_and_counted():
    note = "\n<system-reminder>\nbe careful\n</system-reminder>"
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": f"1: x{note}"}]}
    extraction = extract([line(content=f"hello{note}"), line(content=[result])])
    assert [turn.content for turn in extraction.turns] == ["hello", "[tool] 1: x"]
    assert extraction.omitted == {"system": 2}
    assert reason(line(content=note)) == "system message"


class TestMessagesInLines:
    def test_what_is_said_and_called(self):
        content = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "I look."},
            {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
        ]
        turn = only({"type": "message", "id": "1", "message": {"role": "assistant", "content": content}})
        assert turn.content == 'I look.\n[call bash] {"command": "ls"}'

    def test_results(self):
        message = {
            "role": "toolResult",
            "toolCallId": "c1",
            "toolName": "bash",
            "content": "x",
            "isError": True,
        }
        turn = only({"type": "message", "message": message})
        assert (turn.content, turn.tool_call_id, turn.is_error) == ("[bash] x", "c1", True)

    def test_a_command_of_the_user(self):
        message = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0}
        turns = extract([{"type": "message", "message": message}]).turns
        assert [(turn.role, turn.content) for turn in turns] == [("user", "! ls"), ("tool", "[bash] a.txt")]


def test_real_logs():
    counts: Counter[str] = Counter()
    unreadable = 0
    for record in records("traj/claude_code_jsonl_sessions.jsonl"):
        extraction = extract(record["lines"])
        told = {turn.index for turn in extraction.turns} | {item.index for item in extraction.skipped}
        assert told == set(range(len(record["lines"])))
        counts.update(turn.role for turn in extraction.turns)
        unreadable += sum(item.unreadable for item in extraction.skipped)
        counts.update(item.reason for item in extraction.skipped if not item.unreadable)
    assert counts == {"user": 23, "assistant": 34, "tool": 21, "summary only": 4, "compact summary only": 1}
    assert unreadable == 4  # a string, a number, a list and {"silly": …} among the lines of edge_cases.jsonl


def test_every_result_of_a_tool_in_real_logs_has_the_name_of_its_tool():
    turns = [
        turn
        for record in records("traj/claude_code_jsonl_sessions.jsonl")
        for turn in extract(record["lines"]).turns
        if turn.role == "tool"
    ]
    assert [turn.content for turn in turns if not turn.tool_name] == []
    assert [turn.tool_name for turn in turns if turn.is_error] == ["FailingTool", "Bash"]
