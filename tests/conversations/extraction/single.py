"""What a single message gives."""

from __future__ import annotations

from typing import Any

from conversations.extraction import Turn, extract


def only(message: Any, *before: Any) -> Turn:
    """The one turn of the last message; it must give one and skip nothing."""
    extraction = extract([*before, message])
    turns = [turn for turn in extraction.turns if turn.index == len(before)]
    assert len(turns) == 1
    return turns[0]


def reason(message: Any) -> str:
    """The reason why a message yields no turn."""
    extraction = extract([message])
    assert extraction.turns == []
    return extraction.skipped[0].reason


def call(name: str, arguments: Any, call_id: Any = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def told(*messages: Any) -> list[tuple[str, str]]:
    """Role and content of every turn of some messages, `error` where a tool failed; none may be skipped."""
    extraction = extract(list(messages))
    assert extraction.skipped == []
    return [("error" if turn.is_error else turn.role, turn.content) for turn in extraction.turns]
