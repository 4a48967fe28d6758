"""Experiences as evidence: the lesson, how much it counts and why, and the words that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import Q
from django.db.models.functions import Left

from conversations.admin.marks import Excerpt, excerpt
from conversations.admin.transcript import turn_url
from conversations.models import ConversationMessage
from mirix.text import shorten
from skills.distillation.explaining import explain_credibility
from skills.models import ExperienceType, SkillExperience

KINDS = {ExperienceType.WORTH_LEARNING.value: "good", ExperienceType.WORTH_AVOIDING.value: "bad"}
MAX_SURROUNDED = 30
"""Of so many experiences the turns around theirs are shown."""
BESIDE = 1
BESIDE_CHARS = 220


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A turn before or after the one that is quoted, shortened."""

    seq: int
    speaker: str
    text: str
    is_error: bool


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One supporting experience, ready for a page."""

    experience: SkillExperience
    kind: str
    """`good` for what is worth learning, `bad` for what is worth avoiding."""
    importance: int
    credibility: int
    """Both in per cent."""
    why_credible: str
    """How the credibility was computed."""
    excerpt: Excerpt | None
    """The words around the quote; None when the turn is no longer kept."""
    speaker: str
    """Who spoke in the turn, kept or not; empty where nobody knows any more."""
    url: str
    """The turn in its transcript."""
    before: tuple[Beside, ...] = ()
    after: tuple[Beside, ...] = ()


def view_experience(
    experience: SkillExperience, beside: Mapping[tuple[str, int], Beside] | None = None
) -> Evidence:
    """Return an experience with the part of its turn that grounds it, and what of `beside` is next to it."""
    turn = experience.turn
    seq = turn.seq if turn else 0
    around = beside or {}
    before = (around.get((experience.session_id, seq - step)) for step in range(BESIDE, 0, -1))
    after = (around.get((experience.session_id, seq + step)) for step in range(1, BESIDE + 1))
    return Evidence(
        experience=experience,
        kind=KINDS[experience.experience_type],
        importance=round(experience.importance * 100),
        credibility=round(experience.credibility * 100),
        why_credible=explain_credibility(
            signal_type=experience.signal_type,
            verified=experience.verified,
            speaker=turn.role if turn else experience.turn_role,
            credibility=experience.credibility,
            claim=experience.model_credibility,
        ),
        excerpt=excerpt(turn.content, experience.quote) if turn else None,
        speaker=turn.get_role_display() if turn else experience.get_turn_role_display(),
        url=turn_url(experience.session_id, turn.seq if turn else experience.turn_seq),
        before=tuple(one for one in before if one) if turn else (),
        after=tuple(one for one in after if one) if turn else (),
    )


def view_evidence(experiences: Sequence[SkillExperience]) -> list[Evidence]:
    """Return experiences, whose turns are fetched along, with the turns around theirs; one query."""
    beside = _turns_beside(experiences[:MAX_SURROUNDED])
    return [view_experience(experience, beside) for experience in experiences]


def _turns_beside(experiences: Sequence[SkillExperience]) -> dict[tuple[str, int], Beside]:
    wanted: dict[str, set[int]] = {}
    for experience in experiences:
        if experience.turn:
            near = range(experience.turn.seq - BESIDE, experience.turn.seq + BESIDE + 1)
            wanted.setdefault(experience.session_id, set()).update(near)
    if not wanted:
        return {}
    any_of = reduce(or_, (Q(session_id=pk, seq__in=sorted(numbers)) for pk, numbers in wanted.items()))
    turns = (
        ConversationMessage.objects.with_owner_of(experiences[0])
        .filter(any_of)
        .annotate(head=Left("content", 4 * BESIDE_CHARS))
        .only("session_id", "seq", "role", "is_error")
    )
    return {
        (turn.session_id, turn.seq): Beside(
            seq=turn.seq,
            speaker=turn.get_role_display(),
            text=shorten(turn.head, BESIDE_CHARS),
            is_error=turn.is_error,
        )
        for turn in turns
    }
