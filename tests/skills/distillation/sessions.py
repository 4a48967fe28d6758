"""Sessions for the tests of distillation, written as messages and read as intake reads them."""

from __future__ import annotations

import json
from typing import Any

from conversations.extraction import extract
from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Lesson, TranscriptTurn


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def assistant(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def tool(
    name: str, arguments: Any, result: str, *, text: str = "", call_id: str = "c1"
) -> list[dict[str, Any]]:
    """A call and its result: two messages, two turns. The id repeats on purpose, as in real sessions."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": text or None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": result},
    ]


def turns(*parts: list[dict[str, Any]]) -> list[TranscriptTurn]:
    """The turns of the parts, numbered from 1."""
    return turns_of([message for part in parts for message in part])


def turns_of(messages: list[Any]) -> list[TranscriptTurn]:
    return [
        TranscriptTurn(
            seq=seq,
            role=turn.role,
            content=turn.content,
            tool_calls=turn.tool_calls,
            tool_name=turn.tool_name,
            tool_call_id=turn.tool_call_id,
            is_error=turn.is_error,
        )
        for seq, turn in enumerate(extract(messages).turns, start=1)
    ]


def lessons(*parts: list[dict[str, Any]], first_seq: int = 1) -> list[Lesson]:
    return OfflineDistiller().distil(turns(*parts), first_seq=first_seq).lessons


def told(found: list[Lesson]) -> list[tuple[str, int | None, str]]:
    """Type, turn and title of each lesson: enough to see what a session taught."""
    return [(lesson.experience_type, lesson.turn_seq, lesson.title) for lesson in found]
