"""Whether what somebody read is still what the skill says, and what their change makes of it today."""

from __future__ import annotations

from skills.content import Content
from skills.models import Skill, SkillRevision
from skills.review.rebasing import rebased


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


def on_today(
    *, skill: Skill | None, revision: SkillRevision, content: Content | None = None
) -> Content | None:
    """Return what a proposal makes of its skill as it is today; None where it does not fit any more.

    `content` is what somebody made of the proposal, where it is not what it says.

    Where the skill moved on since, that is what it says today with the proposal's change. It does not fit
    where both change the same part, or where nothing is left to change.
    """
    content = content or Content.of(revision)
    if not has_moved(skill=skill, base=revision.base):
        return content
    current = skill.current_revision if skill else None
    if current is None or revision.base is None:
        return None
    theirs = Content.of(current)
    found = rebased(base=Content.of(revision.base), theirs=theirs, mine=content)
    return None if found == theirs else found
