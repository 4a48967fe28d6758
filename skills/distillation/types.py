"""What passes between a run and a distiller. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class TranscriptTurn:
    """One turn as a distiller sees it."""

    seq: int
    role: str
    content: str
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_name: str = ""
    tool_call_id: str = ""
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One experience before it is checked and stored; the fields are those of `SkillExperience`."""

    experience_type: str
    title: str
    content: str
    topic: str
    """What it is about: `tool:<name>` or `task:<slug>`; lessons of one topic become one skill."""
    details: dict[str, Any]
    """The facts as data, for evolution; see `skills.distillation.offline`."""
    importance: float
    credibility: float
    """The distiller's own claim; `skills.distillation.evidence` computes the final number."""
    signal_type: str
    quote: str
    turn_seq: int | None


@dataclass(frozen=True, kw_only=True)
class DistillerReply:
    """What a distiller made of one session."""

    verdict: Literal["ok", "empty", "retry"]
    lessons: list[Lesson] = field(default_factory=list)
    raw_reply: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


class Distiller(Protocol):
    """Turns one session's transcript into lessons; called outside any transaction."""

    name: str
    model: str
    prompt_version: str

    def distil(self, turns: Sequence[TranscriptTurn], *, first_seq: int) -> DistillerReply:
        """Return the lessons of the turns from `first_seq` on; earlier turns are context only."""
        ...
