"""What the queue of proposals is filtered by. Each takes what it offers, and passes over anything else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from mirix.templatetags.mirix_admin import ago
from skills.admin.queue import waiting
from skills.models import RevisionState
from skills.review.risks import RISK_LABELS

ALL = "all"
MAX_RUNS = 12
"""So many runs are offered, the latest whose proposals wait; a link may ask for any."""
AGES = {
    "new": ("Less than a day", None, timedelta(days=1)),
    "day": ("A day or more", timedelta(days=1), None),
    "week": ("A week or more", timedelta(days=7), None),
    "month": ("30 days or more", timedelta(days=30), None),
}
SUPPORT: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("No experience", {"evidence_count": 0}),
    "one": ("One", {"evidence_count": 1}),
    "few": ("Two to four", {"evidence_count__range": (2, 4)}),
    "many": ("Five or more", {"evidence_count__gte": 5}),
}


class StateFilter(admin.SimpleListFilter):
    """What waits for a decision, unless another state is asked for."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return every state but the default one, and all of them."""
        rest = [
            (str(value), str(label))
            for value, label in RevisionState.choices
            if value != RevisionState.PROPOSED
        ]
        return [*rest, (ALL, "All revisions")]

    def choices(self, changelist: Any) -> Any:
        """Name the default for what it is."""
        choices = list(super().choices(changelist))
        choices[0]["display"] = RevisionState.PROPOSED.label
        return choices

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by state; without a choice, what waits."""
        chosen = self.value() or RevisionState.PROPOSED.value
        return queryset if chosen == ALL else queryset.filter(state=chosen)


class RiskFilter(admin.SimpleListFilter):
    """With or without anything to watch, or with one thing in particular."""

    title = "risk flags"
    parameter_name = "risk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer some, none, and each flag."""
        return [("some", "Something to watch"), ("none", "Nothing to watch"), *RISK_LABELS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by the flags that the revision carries."""
        match self.value():
            case "some":
                return queryset.exclude(risk_flags=[])
            case "none":
                return queryset.filter(risk_flags=[])
            case flag if flag in RISK_LABELS:
                return queryset.filter(risk_flags__contains=[flag])
        return queryset


class SupportFilter(admin.SimpleListFilter):
    """How many experiences stand behind it."""

    title = "support"
    parameter_name = "support"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer a few numbers."""
        return [(value, label) for value, (label, _) in SUPPORT.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by the number of experiences."""
        chosen = SUPPORT.get(self.value() or "")
        return queryset.filter(**chosen[1]) if chosen else queryset


class AgeFilter(admin.SimpleListFilter):
    """For how long it has been there."""

    title = "age"
    parameter_name = "age"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer a few ages."""
        return [(value, label) for value, (label, _, _) in AGES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by when it was written."""
        _, least, less = AGES.get(self.value() or "", ("", None, None))
        now = timezone.now()
        if least is not None:
            queryset = queryset.filter(created_at__lte=now - least)
        return queryset if less is None else queryset.filter(created_at__gt=now - less)


class RunFilter(admin.SimpleListFilter):
    """Which run proposed it."""

    title = "run"
    parameter_name = "run"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the latest runs whose proposals wait, and the one that was asked for."""
        rows = waiting(request).filter(run__isnull=False).order_by("-run__created_at", "run_id")
        latest = rows.values_list("run_id", "run__created_at").distinct()[:MAX_RUNS]
        offered = {pk: f"{made:%Y-%m-%d %H:%M}, {ago(made)}" for pk, made in latest}
        asked = self.value()
        return list((offered if asked is None or asked in offered else {asked: asked} | offered).items())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Filter by run."""
        return queryset.filter(run=self.value()) if self.value() else queryset
