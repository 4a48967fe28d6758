"""Logs of the Codex kind: lines `{"timestamp", "type", "payload"}`, or the events that it prints as it works.

In a log, `response_item` lines hold items of the OpenAI Responses API; `event_msg` lines tell the same again
for the screen. Printed events are `{"type": "item.completed", "item": {…}}`.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.reading import Family, Reading

ABOUT_THE_SESSION = {
    "session_meta": "note of the program",
    "turn_context": "note of the program",
    "compacted": "compact summary",
    "event_msg": "event told elsewhere",
}
EVENT = re.compile(r"(thread|turn|item)\.\w+")
FINISHED = "item.completed"
GIVEN_BY_THE_PROGRAM = re.compile(
    r"\s*(<(environment_context|user_instructions|permissions instructions|turn_aborted|collaboration_mode)\b"
    r"|# AGENTS\.md instructions)"
)
NO_MESSAGES = frozenset({"ghost_snapshot", "compaction", "compaction_summary", "other"})


def matches(line: dict[str, Any]) -> bool:
    """Return whether it is a line with a payload, or a printed event."""
    kind = line.get("type")
    if not isinstance(kind, str):
        return False
    if isinstance(line.get("payload"), dict):
        return kind == "response_item" or kind in ABOUT_THE_SESSION
    return EVENT.fullmatch(kind) is not None


def read(line: dict[str, Any], reading: Reading) -> None:
    """Read a line by its type."""
    kind, payload = line["type"], line.get("payload")
    if kind == "response_item" and isinstance(payload, dict):
        _read_item(payload, reading)
    elif kind == FINISHED and isinstance(line.get("item"), dict):
        _read_finished(line["item"], reading)
    else:
        reading.omit(ABOUT_THE_SESSION.get(kind, "event"))


def _read_item(item: dict[str, Any], reading: Reading) -> None:
    reading.message_id = None  # ids of items name calls too, and repeat
    if item.get("type") in NO_MESSAGES:
        reading.omit("note of the program")
    elif item.get("role") == "user" and GIVEN_BY_THE_PROGRAM.match(_first_text(item.get("content"))):
        reading.omit("system")
    else:
        reading.inner(item)


def _first_text(content: Any) -> str:
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return text if isinstance(text, str) else ""


def _read_finished(item: dict[str, Any], reading: Reading) -> None:
    """Read what an event says is done: a message, or a call and what came back at once."""
    match item.get("type", item.get("item_type")):
        case "agent_message" | "assistant_message":
            reading.content("assistant", item.get("text"))
        case "user_message":
            reading.content("user", item.get("text"))
        case "reasoning":
            reading.omit("reasoning")
        case "command_execution":
            _call(item, reading, "shell", {"command": item.get("command")})
            failed = item.get("exit_code") not in (0, None) or item.get("status") == "failed"
            _result(item, reading, "shell", item.get("aggregated_output"), failed=failed)
        case "mcp_tool_call":
            name = item.get("tool")
            _call(item, reading, name, item.get("arguments"))
            output = item.get("error") or item.get("result")
            _result(item, reading, name, _text_of(output), failed=bool(item.get("error")))
        case "file_change":
            _call(item, reading, "apply_patch", {"changes": item.get("changes")})
            status = item.get("status")
            _result(item, reading, "apply_patch", status, failed=status == "failed")
        case "web_search":
            _call(item, reading, "web_search", {"query": item.get("query")})
        case "todo_list" | "error":
            reading.omit("note of the program")
        case kind:
            expected = "agent_message, command_execution, mcp_tool_call, file_change or web_search"
            reading.fault(f"unknown item “{str(kind)[:64]}”; expected {expected}")


def _text_of(output: Any) -> Any:
    if isinstance(output, dict):
        return output.get("content", output.get("message", output))
    return output


def _call(item: dict[str, Any], reading: Reading, name: Any, arguments: Any) -> None:
    reading.call(make_call(id=item.get("id"), name=name, arguments=arguments))


def _result(item: dict[str, Any], reading: Reading, name: Any, content: Any, *, failed: bool) -> None:
    reading.result(content, name=name, call_id=item.get("id"), is_error=True if failed else None)


FAMILY = Family(
    name="codex_log",
    matches=matches,
    read=read,
)
