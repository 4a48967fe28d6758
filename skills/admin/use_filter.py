"""What the list of skills is filtered by beside their own columns: whether agents get them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mirix.days import last_days
from skills.admin.scope import scope_of
from skills.selectors.use import never_returned

DAYS = 30
NEVER = "never"


class UseFilter(admin.SimpleListFilter):
    """By whether the newest searches over the API returned a skill lately."""

    title = "use"
    parameter_name = "use"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer what nobody gets."""
        return [(NEVER, f"Never retrieved in {DAYS} days")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to what none returned; of more organizations than are told together, to nothing.

        That they are too many, the list says (`is_of_too_many`).
        """
        if self.value() != NEVER:
            return queryset
        scope = scope_of(request)
        if scope.ids is None:
            return queryset.none()
        return never_returned(queryset, organizations=scope.ids, since=last_days(DAYS).moments[0])


def is_of_too_many(request: HttpRequest) -> bool:
    """Return whether a list is asked what is never retrieved of more organizations than are told together."""
    return request.GET.get(UseFilter.parameter_name) == NEVER and scope_of(request).ids is None
