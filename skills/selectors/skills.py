"""Reads of skills and of their past."""

from __future__ import annotations

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import RevisionState, Skill, SkillRevision, SkillStatus


def skills_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's skills with their end users, ready to be shown."""
    return Skill.objects.for_organization(organization).select_related("end_user")


def revisions_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's revisions of every state with base and decisions, ready to be shown."""
    return (
        SkillRevision.objects.for_organization(organization)
        .select_related("end_user", "base", "merged_from")
        .prefetch_related("decisions")
    )


def others_of(*, skill: Skill) -> OwnedQuerySet:
    """Return the other skills of a skill's owner that are not archived, by name."""
    others = Skill.objects.with_owner_of(skill).exclude(pk=skill.pk)
    return others.exclude(status=SkillStatus.ARCHIVED).order_by("name")


def others_of_owner(revision: SkillRevision) -> OwnedQuerySet:
    """Return the skills of a revision's owner, but its own, that are not archived, by name."""
    skills = Skill.objects.with_owner_of(revision).exclude(pk=revision.skill_id or "")
    return skills.exclude(status=SkillStatus.ARCHIVED).order_by("name")


def merged_skills(*, owner: Owner) -> dict[str, str]:
    """Return the ids of the owner's skills that went into another one, each with the id of that one today."""
    merges = SkillRevision.objects.for_owner(owner).filter(
        state=RevisionState.PUBLISHED, merged_from__skill__status=SkillStatus.ARCHIVED, skill__isnull=False
    )
    latest = merges.order_by("decided_at", "pk").values_list("merged_from__skill", "skill")
    into: dict[str, str] = dict(latest)
    ends = {source: _end_of(source, into) for source in into}
    return {source: end for source, end in ends.items() if end not in into}


def _end_of(source: str, into: dict[str, str]) -> str:
    passed = {source}
    while (following := into.get(source, source)) not in passed:
        passed.add(source := following)
    return source
