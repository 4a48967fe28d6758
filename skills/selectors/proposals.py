"""Reads for review: what waits, how important it is, and the evidence behind it."""

from __future__ import annotations

from django.db.models import F, Q, QuerySet

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from skills.models import RevisionState, SkillExperience, SkillRevision
from skills.selectors.skills import revisions_of

QUEUE_ORDER = ("-priority", "-session_count", "created_at", "id")
"""The most important first, of equals what more sessions speak for, then what has waited longest."""


def proposals_of(*, organization: Organization) -> QuerySet[SkillRevision]:
    """Return an organization's waiting proposals, without order."""
    return revisions_of(organization=organization).filter(state=RevisionState.PROPOSED)


def outdated_proposals(*, owner: Owner) -> QuerySet[SkillRevision]:
    """Return the waiting proposals of an owner that were made against another text than their skill has."""
    open_ones = SkillRevision.objects.for_owner(owner).filter(
        state=RevisionState.PROPOSED, skill__isnull=False
    )
    same_text = Q(skill__current_revision__content_hash=F("base__content_hash"))
    return open_ones.exclude(same_text).order_by("pk")


def evidence_of(*, revision: SkillRevision) -> QuerySet[SkillExperience]:
    """Return the supporting experiences with session and turn, the weightiest first."""
    return revision.experiences.select_related("session", "turn").order_by(
        (F("importance") * F("credibility")).desc(), "pk"
    )


def find_revision(*, organization: Organization, revision_id: str) -> SkillRevision | None:
    """Return a revision of the organization, with what a decision needs of it."""
    found: SkillRevision | None = (
        revisions_of(organization=organization)
        .select_related("skill", "organization")
        .filter(pk=revision_id)
        .first()
    )
    return found
