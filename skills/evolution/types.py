"""What passes between the curator and a proposer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from skills.content import Content

Action = Literal["create", "edit", "confirm", "restore"]


@dataclass(frozen=True, kw_only=True)
class ExperienceView:
    """A pending experience as a proposer sees it."""

    id: str
    session_id: str
    experience_type: str
    title: str
    content: str
    topic: str
    details: dict[str, Any]
    importance: float
    credibility: float
    signal_type: str
    quote: str
    verified: bool
    considered_by: str = ""
    """The model that was asked about it and left it pending; it is asked again with something new."""
    said_at: datetime | None = None
    """When the last turn of its session was, where that was asked for; of two lessons it tells the newer."""
    turn_seq: int | None = None
    """The turn that it rests on; within a session it tells the newer."""
    transcript: str = ""
    """A digest of all that its session said, where that is known: copies of a session have the same."""

    @property
    def voice(self) -> str:
        """What its session counts as: one that was sent again under another id is the same."""
        return self.transcript or self.session_id


@dataclass(frozen=True, kw_only=True)
class SkillView:
    """A text that an operation may edit: a skill, or the open proposal that will become one."""

    skill_id: str | None
    revision_id: str | None
    status: str
    content: Content
    support: tuple[ExperienceView, ...] = ()
    """The experiences that it rests on so far, where they were asked for."""

    @property
    def key(self) -> str:
        """What identifies the text across the revisions of its proposal."""
        key = self.skill_id or self.revision_id
        assert key is not None
        return key


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One change that a proposer asks for; each costs one unit of the budget once it is written.

    A `confirm` changes nothing and costs nothing: its experiences say what the target says already, and
    become support of it. A `restore` takes an archived skill into use again, as it is or edited; the curator
    makes one of whatever speaks for that, no proposer needs to. Operations on one target follow each other:
    each starts from the text that the one before leaves.
    """

    action: Action
    content: Content
    experience_ids: tuple[str, ...]
    rationale: str
    target: SkillView | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An operation that was not written, and why; kept in the run's notes."""

    reason: str
    name: str = ""
    experience_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EvolutionReport:
    """What one evolution did: ids of revisions that wait and that were published, and what was refused."""

    proposed: list[str] = field(default_factory=list)
    published: list[str] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    budget: int = 0


class Proposer(Protocol):
    """Turns related experiences into operations; called outside any transaction."""

    name: str

    def is_ready(self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]) -> bool:
        """Return whether experiences of one topic are enough to propose from; else they wait for more."""
        ...

    def propose(
        self, experiences: Sequence[ExperienceView], candidates: Sequence[SkillView]
    ) -> list[Operation]:
        """Return operations in order of worth, each citing the experiences that support it."""
        ...
