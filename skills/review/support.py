"""What the experiences behind a revision are worth."""

from __future__ import annotations

from collections.abc import Collection

from skills.models import SkillExperience
from skills.review.risks import Support


def as_support(experience: SkillExperience) -> Support:
    """Return what the rules of risk need to know of an experience, whose turn is fetched along."""
    return Support(
        session_id=experience.session_id,
        experience_type=experience.experience_type,
        signal_type=experience.signal_type,
        verified=experience.verified,
        quarantined=experience.quarantined,
        role=experience.turn.role if experience.turn else experience.turn_role,
        quote=experience.quote,
    )


def stands_on_nothing_verified(support: Collection[SkillExperience]) -> bool:
    """Return whether there is support, and none of it is verified and trusted."""
    return bool(support) and not any(
        experience.verified and not experience.quarantined for experience in support
    )
