"""Reads of runs and of the attempts in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Count, Prefetch, QuerySet

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from skills.models import AutoDreamRun, DistillationAttempt, ProposerCall, RunState


def runs_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's runs with their end users, ready to be shown."""
    return AutoDreamRun.objects.for_organization(organization).select_related("end_user")


def with_attempts(runs: OwnedQuerySet) -> OwnedQuerySet:
    """Add to runs their attempts, each with its session, and questions to a model, in order.

    Raw replies are left in the database.
    """
    attempts = (
        DistillationAttempt.objects.select_related("session")
        .defer("raw_reply", "session__last_error")
        .order_by("created_at", "pk")
    )
    calls = ProposerCall.objects.defer("raw_reply").order_by("created_at", "pk")
    return runs.prefetch_related(
        Prefetch("attempts", queryset=attempts), Prefetch("proposer_calls", queryset=calls)
    )


def last_dream_at(*, owner: Owner) -> datetime | None:
    """Return when the owner's last finished run ended."""
    finished = AutoDreamRun.objects.for_owner(owner).filter(state=RunState.FINISHED)
    return finished.order_by("-finished_at").values_list("finished_at", flat=True).first()


def attempts_of(*, run: AutoDreamRun) -> QuerySet[Any]:
    """Return a run's attempts in order, each with its session and `experience_count`."""
    return (
        DistillationAttempt.objects.with_owner_of(run)
        .filter(run=run)
        .select_related("session")
        .defer("raw_reply", "dropped")
        .annotate(experience_count=Count("experiences"))
        .order_by("created_at", "pk")
    )


def refused_lately(*, owner: Owner) -> set[str]:
    """Return the ids of the experiences whose operations the owner's last finished run refused."""
    finished = AutoDreamRun.objects.for_owner(owner).filter(state=RunState.FINISHED)
    notes = finished.order_by("-finished_at").values_list("notes", flat=True).first()
    return {item for note in notes or [] for item in note.get("experience_ids", [])}
