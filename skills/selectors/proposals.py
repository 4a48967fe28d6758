"""Reads for review: what waits, how important it is, and the evidence behind it."""

from __future__ import annotations

from django.db.models import Count, F, FloatField, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, NullIf

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from skills.models import RevisionState, SkillExperience, SkillRevision
from skills.selectors.skills import revisions_of

QUEUE_ORDER = ("-priority", "-session_count", "created_at", "id")
"""The most important first, of equals what more sessions speak for, then what has waited longest."""


def proposals_of(*, organization: Organization) -> QuerySet[SkillRevision]:
    """Return an organization's waiting proposals with priority and evidence count, without order."""
    return with_priority(waiting_in(organization=organization))


def waiting_in(*, organization: Organization) -> QuerySet[SkillRevision]:
    """Return an organization's waiting proposals as they are."""
    return revisions_of(organization=organization).filter(state=RevisionState.PROPOSED)


def outdated_proposals(*, owner: Owner) -> QuerySet[SkillRevision]:
    """Return the waiting proposals of an owner that were made against another text than their skill has."""
    open_ones = SkillRevision.objects.for_owner(owner).filter(
        state=RevisionState.PROPOSED, skill__isnull=False
    )
    same_text = Q(skill__current_revision__content_hash=F("base__content_hash"))
    return open_ones.exclude(same_text).order_by("pk")


def with_priority(revisions: QuerySet) -> QuerySet:
    """Annotate `priority`, the best importance × credibility of the evidence, and how much there is.

    `evidence_count` are experiences, `session_count` the sessions behind them: a transcript that was sent
    again under another id is the same session, and what is quarantined speaks for nothing.
    """
    support = SkillExperience.objects.filter(revisions=OuterRef("pk")).order_by().values("revisions")
    best = support.annotate(best=Max(F("importance") * F("credibility"))).values("best")
    count = support.annotate(n=Count("pk")).values("n")
    voice = Coalesce(NullIf("session__history_hash", Value("")), "session")
    sessions = support.filter(quarantined=False).annotate(n=Count(voice, distinct=True)).values("n")
    return revisions.annotate(
        priority=Coalesce(Subquery(best), Value(0.0), output_field=FloatField()),
        session_count=Coalesce(Subquery(sessions), Value(0), output_field=IntegerField()),
        evidence_count=Coalesce(Subquery(count), Value(0), output_field=IntegerField()),
    )


def evidence_of(*, revision: SkillRevision) -> QuerySet[SkillExperience]:
    """Return the supporting experiences with session and turn, the weightiest first."""
    return revision.experiences.select_related("session", "turn").order_by(
        (F("importance") * F("credibility")).desc(), "pk"
    )


def find_revision(*, organization: Organization, revision_id: str) -> SkillRevision | None:
    """Return a revision of the organization, with what a decision needs of it."""
    found: SkillRevision | None = (
        with_priority(revisions_of(organization=organization))
        .select_related("skill", "organization")
        .filter(pk=revision_id)
        .first()
    )
    return found
