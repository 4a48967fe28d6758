"""What extraction returns. Pure: these pass between any message shape and the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
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
    """Hash of what its message says, all its turns together, before anything is cut or resolved."""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    """Calls that the assistant made: `{"id": str, "name": str, "arguments": object or str}`."""
    tool_name: str = ""
    tool_call_id: str = ""
    is_error: bool = False
    truncated: bool = False
    message_id: str = ""
    part: int = 0
    """The turn's place among those of its message, where that has an id."""


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
    left_out: dict[int, dict[str, int]] = field(default_factory=dict)
    """By the index of a message that did yield turns: how many texts of which kind are not in them."""

    @property
    def omitted(self) -> dict[str, int]:
        """How many texts of which kind are in no turn although their messages yielded some."""
        return self.omitted_from(set(self.left_out))

    def omitted_from(self, indexes: Collection[int]) -> dict[str, int]:
        """Return `omitted` for some messages only."""
        total: Counter[str] = Counter()
        for index, kinds in self.left_out.items():
            if index in indexes:
                total.update(kinds)
        return dict(total)
