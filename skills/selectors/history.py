"""Reads of a skill's past: its versions, and which two are compared."""

from __future__ import annotations

from django.db.models import Q

from mirix.tenants.querysets import OwnedQuerySet
from skills.models import RevisionState, Skill, SkillRevision


class NoSuchRevision(Exception):
    """A skill has no revision of that id or version; `name` is what was asked for."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no revision {name!r} of this skill.")


def past_of(*, skill: Skill) -> OwnedQuerySet:
    """Return every revision of a skill, ready to be shown, newest first."""
    return (
        SkillRevision.objects.with_owner_of(skill)
        .filter(skill=skill)
        .select_related("end_user", "base", "author", "merged_from")
        .prefetch_related("decisions")
        .order_by("-created_at", "-pk")
    )


def versions_of(*, skill: Skill) -> OwnedQuerySet:
    """Return what was published of a skill, the latest first."""
    return past_of(skill=skill).filter(state=RevisionState.PUBLISHED).order_by("-decided_at", "-pk")


def find_of(*, skill: Skill, name: str) -> SkillRevision:
    """Return a revision of a skill by its id or version; raises `NoSuchRevision`."""
    named = Q(pk=name) | Q(version=name, state=RevisionState.PUBLISHED)
    found: SkillRevision | None = past_of(skill=skill).filter(named).first() if name else None
    if found is None:
        raise NoSuchRevision(name)
    return found


def pair_of(*, skill: Skill, old: str = "", new: str = "") -> tuple[SkillRevision | None, SkillRevision]:
    """Return the two revisions to compare, each by id or version.

    Without `new` the skill of today; without `old` what was published before `new`, None where nothing was.
    Raises `NoSuchRevision`.
    """
    later = find_of(skill=skill, name=new or skill.current_revision_id or "")
    if old:
        return find_of(skill=skill, name=old), later
    if later.state != RevisionState.PUBLISHED:
        return later.base, later
    earlier = versions_of(skill=skill).filter(decided_at__lt=later.decided_at or later.created_at)
    return later.base or earlier.first(), later
