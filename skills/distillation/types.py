"""What passes between a run and a distiller. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from skills.search.fingerprints import ServedText


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
class KnownSkill:
    """A skill that the owner has already, as a distiller is told of it."""

    name: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a distiller may know beside the turns; the run gathers it before it asks."""

    skills: Sequence[KnownSkill] = ()
    """The owner's skills nearest to the session, nearest first: what they say is known."""
    served: ServedText = field(default_factory=ServedText)
    """What our own search served to the owner's agents: no work of theirs to learn from."""


ALONE = Surroundings()
"""Nothing is known beside the turns."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A part of a reply that gave no lesson, and why."""

    reason: str
    text: str
    """The part itself, shortened."""


@dataclass(frozen=True, kw_only=True)
class DistillerReply:
    """What a distiller made of one session."""

    verdict: Literal["ok", "empty", "retry"]
    lessons: list[Lesson] = field(default_factory=list)
    seen: Sequence[TranscriptTurn] | None = None
    """The turns as the distiller saw them, where that is not as they were given: the evidence is looked up
    in these."""
    dropped: list[Dropped] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    """What the transcript held that tries to steer its reader."""
    prompt_hash: str = ""
    """SHA-256 (hex) of what was sent to a model; empty where nothing was."""
    raw_reply: str = ""
    calls: int = 0
    """Requests that were sent to an endpoint."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    """Why it is to be tried again."""
    fault: Literal["session", "endpoint", "either"] = "session"
    """Whose fault a `retry` is: for an endpoint that cannot be reached, refuses the key or takes no more
    requests, no session is given up, and others need not be tried now. `either` where an endpoint fails that
    may be down, or may fail at this session alone: other sessions tell."""
    retry_after: float | None = None
    """Seconds that the endpoint asked to be left alone."""


class Distiller(Protocol):
    """Turns one session's transcript into lessons; called outside any transaction."""

    name: str
    model: str
    prompt_version: str
    asks_model: bool
    """Whether it sends sessions to a model: what it is told of their surroundings is worth gathering."""

    def distil(
        self, turns: Sequence[TranscriptTurn], *, first_seq: int, surroundings: Surroundings = ALONE
    ) -> DistillerReply:
        """Return the lessons of the turns from `first_seq` on; earlier turns are context only."""
        ...

    def estimate(self, *, characters: int, octets: int = 0, turns: int = 0) -> int:
        """Return about how many tokens it takes to distil a session of so many characters and turns.

        `octets` are those of the characters in UTF-8. Prompt and answer together, and rather too many than
        too few; 0 where no model is asked.
        """
        ...
