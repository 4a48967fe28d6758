"""Reads of skills and of their past."""

from __future__ import annotations

from mirix.tenants.models import Organization
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import Skill, SkillRevision


def skills_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's skills with their end users, ready to be shown."""
    return Skill.objects.for_organization(organization).select_related("end_user")


def revisions_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's revisions of every state with base and decisions, ready to be shown."""
    return (
        SkillRevision.objects.for_organization(organization)
        .select_related("end_user", "base")
        .prefetch_related("decisions")
    )
