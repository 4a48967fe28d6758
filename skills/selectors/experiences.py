"""Reads of experiences."""

from __future__ import annotations

from django.db.models import F

from mirix.tenants.models import Organization, OwnedQuerySet
from skills.models import SkillExperience


def experiences_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's experiences with session, end user and `run_id`, ready to be shown."""
    return (
        SkillExperience.objects.for_organization(organization)
        .select_related("session", "end_user")
        .annotate(run_id=F("attempt__run"))
    )
