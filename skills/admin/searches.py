"""Searches: what was asked, what was returned, and what the answer had to do without."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from mirix.admin_base import OrganizationFilter, display
from mirix.admin_days import DayFilter
from mirix.templatetags.mirix_admin import ago, coded
from mirix.text import clean_text, shorten
from skills.admin.searching import SearchingAdmin
from skills.models import SearchEvent, Skill
from skills.search.service import METHODS

QUERY_CHARS = 90


class DegradedFilter(admin.SimpleListFilter):
    """Filter by whether the answer was degraded."""

    title = "answer"
    parameter_name = "degraded"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the two kinds of answers."""
        return [("yes", "Degraded"), ("no", "Complete")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to the chosen kind."""
        match self.value():
            case "yes":
                return queryset.exclude(degraded="")
            case "no":
                return queryset.filter(degraded="")
        return queryset


class MethodFilter(admin.SimpleListFilter):
    """Filter by method; offers all there are, without asking the table."""

    title = "method"
    parameter_name = "method"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the methods of a search."""
        return [(method, method) for method in METHODS]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to the chosen method."""
        return queryset.filter(method=self.value()) if self.value() else queryset


@admin.register(SearchEvent)
class SearchEventAdmin(SearchingAdmin):
    """The log of searches."""

    page_template = "admin/skills/searchevent/page.html"
    heavy_fields = ("filter_tags", "revision_ids", "scores")
    list_display = ("asked", "id", "whose", "method", "found", "shown_answer", "took", "organization", "when")
    list_filter = ("source", MethodFilter, DegradedFilter, DayFilter, OrganizationFilter)
    list_select_related = ("organization", "end_user")
    search_fields = ("id", "skill_ids")
    search_help_text = "The id of a search, or of a skill that was returned"
    sortable_by = ("when",)
    ordering = ("-created_at", "id")
    empty_title = "No search yet"
    empty_text = (
        "Each search over the API or by command, and each that is tried here, leaves a row for as long as "
        "the log is kept."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what has an index: exact ids."""
        if not (word := clean_text(search_term).strip()):
            return queryset, False
        return queryset.filter(Q(pk=word) | Q(skill_ids__contains=[word])), False

    @display(description="Query")
    def asked(self, obj: SearchEvent) -> str:
        """Return the query in a line."""
        return coded(shorten(obj.query, QUERY_CHARS)) if obj.query.strip() else "(newest first)"

    @display(description="In the skills of")
    def whose(self, obj: SearchEvent) -> str:
        """Return whose skills were searched."""
        return str(obj.end_user) if obj.end_user else "all users"

    @display(description="Returned")
    def found(self, obj: SearchEvent) -> str:
        """Return how many rows of how many that matched."""
        return f"{len(obj.skill_ids)} of {obj.total_count}"

    @display(description="Answer", label={"Complete": "success", "Degraded": "warning"})
    def shown_answer(self, obj: SearchEvent) -> str:
        """Return whether anything was missing."""
        return "Degraded" if obj.degraded else "Complete"

    @display(description="Took")
    def took(self, obj: SearchEvent) -> str:
        """Return the milliseconds that the search took."""
        return f"{obj.duration_ms:.1f} ms"

    @display(description="When", ordering="created_at")
    def when(self, obj: SearchEvent) -> str:
        """Return how long ago that was."""
        return ago(obj.created_at)

    def page_context(self, request: HttpRequest, obj: SearchEvent) -> dict[str, Any]:
        """Return what was returned, each with the name that its skill has today."""
        skills = Skill.objects.with_organization_of(obj).filter(pk__in=obj.skill_ids)
        names = dict(skills.values_list("pk", "name"))
        return {
            "event": obj,
            "returned": [(result, names.get(result.skill_id)) for result in obj.results],
        }
