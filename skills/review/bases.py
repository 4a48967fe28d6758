"""Whether what somebody read is still what the skill says."""

from __future__ import annotations

from skills.models import Skill, SkillRevision


def has_moved(*, skill: Skill | None, base: SkillRevision | None) -> bool:
    """Return whether the skill says something else by now than the revision that somebody began with.

    A skill that was archived and restored, or changed and rolled back, says the same as before: whoever
    began then overwrites nothing.
    """
    current_id = skill.current_revision_id if skill else None
    if current_id == (base.pk if base else None):
        return False
    current = skill.current_revision if skill else None
    return current is None or base is None or current.content_hash != base.content_hash
