"""A filter of lists by day, as the charts of the home page link to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from mirix.days import Span

LAST_DAYS = {1: "Today", 7: "The last 7 days", 30: "The last 30 days"}


class DayFilter(admin.SimpleListFilter):
    """By the day on which a row was made: one (`2026-05-04`) or several (`2026-05-04..2026-05-06`)."""

    title = "day"
    parameter_name = "day"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the last days, and those that were asked for."""
        today = timezone.localdate()  # spares lists a query; what is offered are dates all the same
        offered = {
            str(Span(first=today - timedelta(days=count - 1), last=today)): label
            for count, label in LAST_DAYS.items()
        }
        asked = Span.read(self.value() or "")
        if asked is not None:
            offered.setdefault(str(asked), str(asked).replace("..", " to "))
        return list(offered.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to the days; what is no day narrows nothing."""
        span = Span.read(self.value() or "")
        if span is None:
            return queryset
        start, end = span.moments
        return queryset.filter(created_at__gte=start, created_at__lt=end)
