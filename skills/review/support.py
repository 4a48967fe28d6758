"""What the experiences behind a revision are worth."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from conversations.models import ConversationMessage, TurnRole
from mirix.text import strings_in
from skills.content import Content
from skills.models import SkillExperience
from skills.review.diffs import readable_fields
from skills.review.risks import Support
from skills.review.unsupported import unsupported_steps

MAX_SESSIONS = 50


def as_support(experience: SkillExperience) -> Support:
    """Return what the rules of risk need to know of an experience; turn and session are fetched along."""
    return Support(
        session_id=voice_of(experience),
        experience_type=experience.experience_type,
        signal_type=experience.signal_type,
        verified=experience.verified,
        quarantined=experience.quarantined,
        role=experience.turn.role if experience.turn else experience.turn_role,
        quote=experience.quote,
    )


def voice_of(experience: SkillExperience) -> str:
    """Return what the session of an experience counts as; it is fetched along.

    The same transcript that was sent again under another id is the same session: the digest tells.
    """
    return experience.session.history_hash or experience.session_id


def sessions_behind(support: Collection[SkillExperience]) -> int:
    """Return how many sessions speak for a text, copies once; what is quarantined speaks for nothing."""
    return len({voice_of(experience) for experience in support if not experience.quarantined})


def stands_on_nothing_verified(support: Collection[SkillExperience]) -> bool:
    """Return whether there is support, and none of it is verified and trusted."""
    return bool(support) and not any(
        experience.verified and not experience.quarantined for experience in support
    )


def unsupported_in(
    before: Content | None, after: Content, experiences: Collection[SkillExperience]
) -> list[str]:
    """Return what a text tells an agent to use that neither the one before nor its support speaks of.

    Without support there is nothing to hold it against: imports and texts of persons.
    """
    if not experiences:
        return []
    old = "\n".join(readable_fields(before).values()) if before else ""
    new = "\n".join(readable_fields(after).values())
    return unsupported_steps(old, new, _words_behind(experiences))


def _words_behind(experiences: Collection[SkillExperience]) -> Iterator[str]:
    """Yield the texts that may speak for what a revision tells an agent to use.

    The quotes and the turns that they stand in, and what users said and agents said and called in the
    sessions of the experiences, the latest `MAX_SESSIONS` of them. What else a tool put out counts for
    nothing, since anybody may have written it.
    """
    yield from (experience.quote for experience in experiences)
    sessions = sorted({experience.session_id for experience in experiences}, reverse=True)[:MAX_SESSIONS]
    turns = ConversationMessage.objects.with_owner_of(next(iter(experiences))).filter(session__in=sessions)
    quoted = {experience.turn_id for experience in experiences}
    for pk, role, content, calls in turns.values_list("pk", "role", "content", "tool_calls").iterator():
        if role != TurnRole.TOOL or pk in quoted:
            yield content
            yield from strings_in(calls)
