"""What extraction returns. Pure: these pass between any message shape and the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One turn, ready to be stored: cleaned, capped, its message's index in the request beside it."""

    index: int
    role: Role
    content: str
    content_hash: str
    """SHA-256 (hex) over the canonical JSON of the raw message, its id left out."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """Calls that the assistant made: `{"id": str, "name": str, "arguments": object or str}`."""
    tool_name: str = ""
    tool_call_id: str = ""
    is_error: bool = False
    truncated: bool = False
    message_id: str = ""


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A message that yields no turn, and why, in words for the caller.

    `unreadable` tells a message that nobody here understands from one that is left out on purpose: the
    request that held it is kept, so that it can be stored once its shape is known.
    """

    index: int
    reason: str
    unreadable: bool = False


@dataclass(frozen=True, kw_only=True)
class Extraction:
    """Turns and skipped messages; every index of the request is in exactly one of the two."""

    turns: list[Turn]
    skipped: list[Skipped]
