"""What a reading of one element comes to: drafts of turns, or the reason for none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conversations.extraction.calls import Call
from conversations.extraction.types import Role


@dataclass(kw_only=True, eq=False)
class Draft:
    """One turn as its family reads it: text and calls still apart, names not yet resolved."""

    role: Role
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tool_name: str = ""
    tool_call_id: str = ""
    is_error: bool | None = None
    """What the message says of itself; None when it says nothing and the text decides."""

    @property
    def gist(self) -> tuple[Any, ...]:
        """What tells whether two drafts say the same, however each was written down."""
        return self.role, self.text.strip(), [(call.name, call.arguments) for call in self.calls]

    @property
    def text(self) -> str:
        """All that is said, each piece on lines of its own."""
        return "\n".join(self.texts)


@dataclass(frozen=True, kw_only=True)
class Omission:
    """No turn, and why. `unreadable` when nobody here understands the message."""

    reason: str
    unreadable: bool = False
