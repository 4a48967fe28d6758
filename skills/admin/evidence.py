"""Experiences as evidence: the lesson, how much it counts, and the words it rests on in their turn."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.admin.marks import Excerpt, excerpt
from conversations.admin.transcript import turn_url
from skills.models import ExperienceType, SkillExperience

KINDS = {ExperienceType.WORTH_LEARNING.value: "good", ExperienceType.WORTH_AVOIDING.value: "bad"}


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One supporting experience, ready for a page."""

    experience: SkillExperience
    kind: str
    """`good` for what is worth learning, `bad` for what is worth avoiding."""
    importance: int
    credibility: int
    """Both in per cent."""
    excerpt: Excerpt | None
    """The words around the quote; None when the turn is no longer kept."""
    speaker: str
    """Who spoke in the turn, kept or not; empty where nobody knows any more."""
    url: str
    """The turn in its transcript."""


def view_experience(experience: SkillExperience) -> Evidence:
    """Return an experience with the part of its turn that grounds it."""
    turn = experience.turn
    return Evidence(
        experience=experience,
        kind=KINDS[experience.experience_type],
        importance=round(experience.importance * 100),
        credibility=round(experience.credibility * 100),
        excerpt=excerpt(turn.content, experience.quote) if turn else None,
        speaker=turn.get_role_display() if turn else experience.get_turn_role_display(),
        url=turn_url(experience.session_id, turn.seq if turn else experience.turn_seq),
    )
