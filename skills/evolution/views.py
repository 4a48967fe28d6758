"""Stored experiences as a proposer sees them."""

from __future__ import annotations

from dataclasses import replace

from skills.evolution.types import ExperienceView
from skills.models import SkillExperience


def pending_view(experience: SkillExperience) -> ExperienceView:
    """Return a pending experience as a proposer sees it, with when it was said."""
    return replace(experience_view(experience), said_at=experience.session.last_turn_at)


def experience_view(experience: SkillExperience) -> ExperienceView:
    """Return an experience as a proposer sees it; its session is fetched along."""
    return ExperienceView(
        id=experience.pk,
        session_id=experience.session_id,
        experience_type=experience.experience_type,
        title=experience.title,
        content=experience.content,
        topic=experience.topic,
        details=experience.details,
        importance=experience.importance,
        credibility=experience.credibility,
        signal_type=experience.signal_type,
        quote=experience.quote,
        verified=experience.verified,
        considered_by=experience.considered_by,
        turn_seq=experience.turn_seq,
        transcript=experience.session.history_hash,
    )
