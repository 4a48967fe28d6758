"""What a family of message shapes hands to the reader: drafts of turns, or the reason for none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversations.extraction.calls import Call
from conversations.extraction.types import Role


@dataclass(frozen=True, kw_only=True)
class Draft:
    """One turn as its family reads it: text and calls still apart, names not yet resolved."""

    role: Role
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    tool_name: str = ""
    tool_call_id: str = ""
    is_error: bool | None = None
    """What the message says of itself; None when it says nothing and the text decides."""


@dataclass(frozen=True, kw_only=True)
class Omission:
    """No turn, and why. `unreadable` when nobody here understands the message."""

    reason: str
    unreadable: bool = False


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family of shapes: whether a message is of it, and how to read one."""

    name: str
    expects: str
    """How its messages look, for the report on a message that no family knows."""
    matches: Callable[[dict[str, Any]], bool]
    read: Callable[[dict[str, Any]], list[Draft] | Omission]


SYSTEM = Omission(reason="system message")
DEVELOPER = Omission(reason="developer message")
EMPTY = Omission(reason="empty message")
REASONING = Omission(reason="reasoning only")


def unreadable(reason: str) -> Omission:
    """Return the omission of a message that could not be understood."""
    return Omission(reason=reason, unreadable=True)
