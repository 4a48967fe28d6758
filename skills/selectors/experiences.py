"""Reads of experiences."""

from __future__ import annotations

from django.db.models import BooleanField, ExpressionWrapper, F, Q

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
    """Return what evolution may use, the weightiest first: importance times credibility, then age.

    What a model left before comes last: however much of that there is, what is new is looked at.
    """
    return (
        SkillExperience.objects.for_owner(owner)
        .filter(status=ExperienceStatus.PENDING, quarantined=False)
        .alias(left_before=ExpressionWrapper(~Q(considered_by=""), BooleanField()))
        .annotate(weight=F("importance") * F("credibility"))
        .order_by("left_before", "-weight", "created_at", "pk")
    )
