"""What became of each revision of a skill: who wrote it, who decided what about it, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.timezone import localtime

from skills.models import ReviewDecision, RevisionState, Skill, SkillRevision
from skills.selectors.days import MOST, Amount
from skills.selectors.history import past_of

SHOWN = 50
OPEN = 6
"""Of what is shown, so much stands open; the rest is one click away."""
REJECTED, LAPSED, AMENDED, WAITS = "Rejected", "Lapsed", "Amended", "Waits"
WORDS = {
    RevisionState.PROPOSED.value: (WAITS, "info"),
    RevisionState.PUBLISHED.value: ("Published", "success"),
    RevisionState.REJECTED.value: (REJECTED, "danger"),
    RevisionState.SUPERSEDED.value: (LAPSED, "plain"),
}
SAID_OF_LAPSED = "Its skill said something else by then."


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One revision and what became of it."""

    revision: SkillRevision
    word: str
    colour: str
    successor: str
    """The id of what took its place; "" where nothing did."""
    is_now: bool
    decision: ReviewDecision | None
    why: str
    """The reason of the decision, else what whoever proposed it said."""

    @property
    def label(self) -> str:
        """What it is called where one of two is chosen."""
        revision = self.revision
        action = revision.get_action_display().lower()
        if revision.version:
            return f"{revision.version} · {action}"
        return f"{self.word.lower()}, {localtime(revision.created_at):%-d %b %Y %H:%M} · {action}"


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The newest revisions of a skill, the latest first, and how many there are."""

    entries: list[Entry]
    total: Amount
    opened = OPEN
    minus_opened = -OPEN

    @property
    def before(self) -> str:
        """The id of what today's text is compared with unless another is chosen: the version before it."""
        others = [entry for entry in self.entries if not entry.is_now]
        published = (entry for entry in others if entry.revision.state == RevisionState.PUBLISHED)
        entry = next(published, others[0] if others else None)
        return entry.revision.pk if entry else ""

    @property
    def has_more(self) -> bool:
        """Return whether there are others than those shown."""
        return self.total.number > len(self.entries)


def timeline_of(skill: Skill, *, besides: Sequence[SkillRevision | None] = ()) -> Timeline:
    """Return the newest revisions of a skill, with `besides` where these are older; four queries."""
    past = past_of(skill=skill)
    rows = list(past.defer("instructions", "triggers", "examples", "source")[:SHOWN])
    known = {row.pk for row in rows}
    rows += [row for row in besides if row is not None and row.pk not in known]
    closed = [row.pk for row in rows if row.state == RevisionState.SUPERSEDED]
    successors: dict[str, str] = dict(
        SkillRevision.objects.with_owner_of(skill)
        .filter(supersedes__in=closed)
        .values_list("supersedes_id", "pk")
    )
    count = past.order_by().values("pk")[: MOST + 1].count()
    return Timeline(
        entries=[_entry(row, skill, successors.get(row.pk, "")) for row in rows],
        total=Amount(number=min(count, MOST), is_least=count > MOST),
    )


def _entry(revision: SkillRevision, skill: Skill, successor: str) -> Entry:
    decisions: Any = revision.decisions.all()  # fetched along
    decision = max(decisions, key=lambda each: (each.created_at, each.pk), default=None)
    word, colour = WORDS[revision.state]
    why = (decision.reason if decision else "") or revision.rationale
    if word == LAPSED:
        word, why = (AMENDED, why) if successor else (LAPSED, SAID_OF_LAPSED)
    return Entry(
        revision=revision,
        word=word,
        colour=colour,
        successor=successor,
        is_now=revision.pk == skill.current_revision_id,
        decision=decision,
        why=why,
    )
