"""Reads of experiences."""

from __future__ import annotations

from django.db.models import F

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import ExperienceStatus, SkillExperience


def experiences_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's experiences with session, end user and `run_id`, ready to be shown."""
    return (
        SkillExperience.objects.for_organization(organization)
        .select_related("session", "end_user")
        .annotate(run_id=F("attempt__run"))
    )


def quarantined_in(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's experiences that wait for a person to release them."""
    return SkillExperience.objects.for_organization(organization).filter(quarantined=True)


def pending_experiences(*, owner: Owner) -> OwnedQuerySet:
    """Return what evolution may use, the weightiest first: importance times credibility, then age."""
    return (
        SkillExperience.objects.for_owner(owner)
        .filter(status=ExperienceStatus.PENDING, quarantined=False)
        .annotate(weight=F("importance") * F("credibility"))
        .order_by("-weight", "created_at", "pk")
    )
