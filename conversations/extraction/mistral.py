"""Mistral: its entries of conversations, `message.input`, `function.call`, `tool.execution` and others.

Its chat messages are read as OpenAI's are; only the chunk `reference` is its own.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.anthropic import left_out
from conversations.extraction.calls import make_call
from conversations.extraction.reading import Family, PartReader, Reading
from conversations.extraction.types import Role


def matches(entry: dict[str, Any]) -> bool:
    """Entries are told by their type, messages among them as well."""
    kind = entry.get("type")
    return isinstance(kind, str) and kind in ENTRIES


def read(entry: dict[str, Any], reading: Reading) -> None:
    """Read one entry."""
    ENTRIES[entry["type"]](entry, reading, "assistant")


def _message(role: Role) -> PartReader:
    def read_message(entry: dict[str, Any], reading: Reading, _role: Role) -> None:
        reading.content(role, entry.get("content"))

    return read_message


def _call(entry: dict[str, Any], reading: Reading, _role: Role) -> None:
    call_id = entry.get("tool_call_id") or entry.get("id")
    reading.call(make_call(id=call_id, name=entry.get("name"), arguments=entry.get("arguments")))
    if entry.get("info"):
        reading.result(entry["info"], name=entry.get("name"), call_id=call_id)


def _result(entry: dict[str, Any], reading: Reading, _role: Role) -> None:
    reading.result(
        entry.get("result"),
        name=entry.get("name"),
        call_id=entry.get("tool_call_id"),
        holder=entry,
        read=("result",),
    )


ENTRIES: dict[str, PartReader] = {
    "message.input": _message("user"),
    "message.output": _message("assistant"),
    "function.call": _call,
    "tool.execution": _call,
    "function.result": _result,
    "agent.handoff": left_out("notice"),
}

FAMILY = Family(
    name="mistral",
    matches=matches,
    read=read,
    parts={"reference": left_out("source"), "tool_file": left_out("source")},
)
