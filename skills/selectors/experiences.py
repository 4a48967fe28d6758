"""Reads of experiences."""

from __future__ import annotations

from django.db.models import BooleanField, ExpressionWrapper, F, Prefetch, Q

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import ExperienceStatus, SkillExperience, SkillRevision


def experiences_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's experiences with session, end user and `run_id`, ready to be shown."""
    return (
        SkillExperience.objects.for_organization(organization)
        .select_related("session", "end_user")
        .annotate(run_id=F("attempt__run"))
    )


def with_revisions(experiences: OwnedQuerySet, *, organization: Organization) -> OwnedQuerySet:
    """Have the revisions fetched that rest on them, the newest first, with what names them alone."""
    named = ("skill", "name", "version", "state", "created_at")
    revisions = SkillRevision.objects.for_organization(organization).only(*named)
    return experiences.prefetch_related(Prefetch("revisions", revisions.order_by("-created_at", "pk")))


def taught(*, organization: Organization, skill_id: str = "", revision_id: str = "") -> OwnedQuerySet:
    """Return the experiences that a revision rests on, or any revision of a skill, each once."""
    revisions = SkillRevision.objects.for_organization(organization)
    revisions = revisions.filter(skill=skill_id) if skill_id else revisions.filter(pk=revision_id)
    links = SkillRevision.experiences.through.objects.filter(skillrevision__in=revisions.values("pk"))
    found = SkillExperience.objects.for_organization(organization)
    return found.filter(pk__in=links.values("skillexperience"))


def quarantined_in(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's experiences that wait for a person to release them."""
    return SkillExperience.objects.for_organization(organization).filter(quarantined=True)


def pending_experiences(*, owner: Owner) -> OwnedQuerySet:
    """Return what evolution may use, with its session, the weightiest first.

    The weight is importance times credibility; of equals the older comes first. What a model left before
    comes last: however much of that there is, what is new is looked at.
    """
    return (
        SkillExperience.objects.for_owner(owner)
        .filter(status=ExperienceStatus.PENDING, quarantined=False)
        .select_related("session")
        .alias(left_before=ExpressionWrapper(~Q(considered_by=""), BooleanField()))
        .annotate(weight=F("importance") * F("credibility"))
        .order_by("left_before", "-weight", "created_at", "pk")
    )
