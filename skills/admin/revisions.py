"""The queue of proposals, and the screen on which one is decided; opening a page never changes anything."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from mirix.admin_base import ChangeList, NotOfferedError, OrganizationFilter, display, two_lines
from mirix.shapes import as_texts
from mirix.templatetags.mirix_admin import ago
from mirix.tenants.selectors import effective
from mirix.text import clean_text
from skills.admin.bulk import approving, rejecting
from skills.admin.changes import remember_view
from skills.admin.columns import per_cent, plus_minus
from skills.admin.deciding import DecisionAdmin, page_of, say_approved, state_tag
from skills.admin.editing import may_edit, save_proposal, user_of
from skills.admin.finding import find_rows
from skills.admin.of_skill import RevisionsOfSkill
from skills.admin.queue import FILTERS, Place, carried, deciders_of, may_decide, place_of
from skills.admin.queue_filters import AgeFilter, RiskFilter, RunFilter, StateFilter, SupportFilter
from skills.admin.reasons import REASONS
from skills.admin.review import review_context
from skills.content import Content
from skills.models import RevisionState, SkillRevision
from skills.review.diffs import changed_words, field_diffs
from skills.review.editing import Outcome, outcome_of_edit
from skills.review.forecast import approval_of, with_what_decides
from skills.review.policy import wants_other_eyes
from skills.review.risks import RISK_LABELS
from skills.selectors.proposals import QUEUE_ORDER

ACTION_COLOURS = {
    "Create": "success",
    "Edit": "info",
    "Merge": "info",
    "Archive": "warning",
    "Rollback": "warning",
    "Quarantine": "danger",
}


@admin.register(SkillRevision)
class RevisionAdmin(DecisionAdmin):
    """Proposals first; every other revision by the filter."""

    list_title = "Proposals"
    actions = ("approve_selected", "reject_selected")
    page_template = "admin/skills/skillrevision/page.html"
    list_filter = (
        StateFilter,
        RiskFilter,
        "action",
        "entry_type",
        "author_kind",
        SupportFilter,
        AgeFilter,
        RunFilter,
        RevisionsOfSkill,
        OrganizationFilter,
    )
    list_select_related = ("organization", "end_user", "skill", "base")
    search_fields = ("name", "description", "id", "run__id")
    search_help_text = "Words of the name or of when to use it, or the id of a revision or a run"
    empty_title = "Nothing waits for you"
    empty_text = (
        "Every proposal is decided. New ones appear when an auto dream has read sealed sessions and found "
        "something worth teaching."
    )
    empty_command = "./run auto_dream --organization ORGANIZATION --user USER"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, texts=("name", "description"), keys=("pk", "run")), False

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Put the most important first in the queue, the newest elsewhere."""
        return ("-created_at", "id") if request.GET.get("state") else QUEUE_ORDER

    def row_names(self, request: HttpRequest) -> tuple[str, str]:
        """Call what waits proposals; the rest are revisions."""
        return super().row_names(request) if request.GET.get("state") else ("proposal", "proposals")

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Show the state only where it differs from row to row."""
        state = ("shown_state",) if request.GET.get("state") else ()
        return (
            "proposal",
            "shown_action",
            "change",
            "shown_priority",
            "evidence",
            "watch",
            "written_by",
            *state,
            "owner",
            "waiting",
        )

    @display(description="Skill", ordering="name")
    def proposal(self, obj: SkillRevision) -> str:
        """Return the name and when to use it."""
        return two_lines(obj.name, obj.description)

    @display(description="Action", ordering="action", label=ACTION_COLOURS)
    def shown_action(self, obj: SkillRevision) -> str:
        """Return what it does to its skill."""
        return "Merge" if obj.merged_from_id else obj.get_action_display()

    @display(description="Words")
    def change(self, obj: SkillRevision) -> str:
        """Return how many words come and go."""
        return plus_minus(*changed_words(field_diffs(text_before(obj), Content.of(obj))))

    @display(description="Priority", ordering="priority")
    def shown_priority(self, obj: Any) -> str:
        """Return the best importance × credibility of its evidence."""
        return per_cent(obj.priority)

    @display(description="Evidence", ordering="evidence_count")
    def evidence(self, obj: Any) -> int:
        """Return how many experiences support it."""
        return obj.evidence_count

    @display(description="To watch")
    def watch(self, obj: SkillRevision) -> str:
        """Return how many risk flags it carries; their words show on hovering."""
        if not (flags := as_texts(obj.risk_flags)):
            return "–"
        words = "; ".join(RISK_LABELS.get(flag, flag) for flag in flags)
        return format_html('<span class="mx-badge mx-badge--warning" title="{}">{}</span>', words, len(flags))

    @display(description="By", ordering="author_kind")
    def written_by(self, obj: SkillRevision) -> str:
        """Return what kind of author wrote it."""
        return obj.get_author_kind_display()

    @display(description="State", ordering="state")
    def shown_state(self, obj: SkillRevision) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    @display(description="Owner", ordering="end_user")
    def owner(self, obj: SkillRevision) -> str:
        """Return the end user and the organization."""
        return two_lines(obj.end_user.user_id, obj.organization.name)

    @display(description="Age", ordering="created_at")
    def waiting(self, obj: SkillRevision) -> str:
        """Return since when it is there."""
        return ago(obj.created_at)

    # ---- The screen of one proposal, and its two decisions --------------------------------------

    def breadcrumbs(self, obj: Any = None) -> list[dict[str, str]]:
        """Call a revision by its name alone."""
        crumbs = super().breadcrumbs(obj)
        return crumbs if obj is None else [crumbs[0], {"title": obj.name}]

    def get_urls(self) -> list[URLPattern]:
        """Add the two decisions about one and about many, and editing."""
        wrap = self.admin_site.admin_view
        return [
            path("approve/", wrap(self.approve_many_view), name="skills_skillrevision_approve_many"),
            path("reject/", wrap(self.reject_many_view), name="skills_skillrevision_reject_many"),
            *self.decision_urls(),
            path("<path:object_id>/edit/", wrap(self.edit_view), name="skills_skillrevision_edit"),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, obj: SkillRevision) -> dict[str, Any]:
        """Return what changes, why, what to watch, and whether the user decides."""
        decides = may_decide(request, obj)
        may_merge = decides and obj.state == RevisionState.PROPOSED and not obj.merged_from_id
        merge = "admin:skills_skillrevision_merge" if obj.skill_id is None else "admin:skills_skill_merge"
        merge_address = reverse(merge, args=[obj.skill_id or obj.pk]) if may_merge else ""
        return review_context(request, obj, text_before(obj)) | {
            "merge_address": merge_address,
            "place": self.place(request, obj),
            "carried": carried(request),
            "reasons": REASONS,
            "state_tag": state_tag(obj),
            "may_decide": decides,
            "is_own": decides and obj.author_id == user_of(request).pk and wants_other_eyes(obj),
            "deciders": "" if decides else deciders_of(obj.organization),
            "may_edit": may_edit(request, obj),
            "edit_publishes": outcome_of_edit(row=obj, may_decide=decides) == Outcome.PUBLISHED,
            "refusal": _refusal(request, obj) if decides and obj.state == RevisionState.PROPOSED else "",
        }

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page, and have the browser remember how differences are to be shown."""
        response = super().change_view(request, object_id, form_url, extra_context)
        remember_view(request, response)
        return response

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the proposed text in a form, and put what was made of it in its place."""
        revision = self.editable(request, object_id)
        if request.method in ("GET", "HEAD") and revision.state != RevisionState.PROPOSED:
            messages.warning(request, f"{revision.name} is decided already, see below.")
            return HttpResponseRedirect(page_of(request, revision.pk))
        following = self.place(request, revision).next

        def go_on(written: SkillRevision) -> HttpResponse | None:
            if written.state != RevisionState.PUBLISHED or written.skill is None:
                return None
            say_approved(request, written.skill)
            return self.go_on(request, following)

        return self.edit_page(request, revision, revision, save_proposal(request, revision), published=go_on)

    @admin.action(description="Approve selected proposals")
    def approve_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks."""
        return self.lead_to("admin:skills_skillrevision_approve_many", request, queryset)

    @admin.action(description="Reject selected proposals")
    def reject_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks."""
        return self.lead_to("admin:skills_skillrevision_reject_many", request, queryset)

    def approve_many_view(self, request: HttpRequest) -> HttpResponse:
        """Ask about the proposals that the address names, and publish each for itself."""
        return self.serve_bulk(request, approving(self, request))

    def reject_many_view(self, request: HttpRequest) -> HttpResponse:
        """Ask why the proposals that the address names are turned down, and do it with each."""
        return self.serve_bulk(request, rejecting(self, request))

    # ---- The queue as it was filtered -------------------------------------------------------------

    def place(self, request: HttpRequest, revision: SkillRevision) -> Place:
        """Return where the proposal stands in the queue that the address carries the filters of."""
        return place_of(request, revision, self._narrowed(request))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """Use a list that fetches nothing where only its rows in order are wanted."""
        return UnfetchedList if isinstance(request, _Asking) else super().get_changelist(request)

    def _narrowed(self, request: HttpRequest) -> QuerySet | None:
        """Return what waits under the filters that the address carries; None without any, or any sense."""
        filters = QueryDict(clean_text(request.GET.get(FILTERS, "")), mutable=True)
        for name in NO_FILTERS:
            filters.pop(name, None)
        if not filters:
            return None
        try:
            rows: QuerySet = self.get_changelist_instance(_Asking(request, filters)).queryset
        except NotOfferedError:
            return None
        return rows.filter(state=RevisionState.PROPOSED)


NO_FILTERS = ("p", "all", "e", "state")
"""What an address of the list may hold that does not narrow down what waits."""


class UnfetchedList(ChangeList):
    """A list of which only the query is wanted."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch nothing."""


class _Asking(HttpRequest):
    """Somebody's request, as if it were one for the list with these filters."""

    def __init__(self, request: HttpRequest, filters: QueryDict) -> None:
        self.__dict__.update(request.__dict__)
        self.GET = filters  # type: ignore[assignment]


def _refusal(request: HttpRequest, revision: SkillRevision) -> str:
    """Return why approving a proposal that waits would be refused; "" where it would not."""
    same = SkillRevision.objects.with_owner_of(revision).filter(pk=revision.pk)
    found = with_what_decides(same).first()
    if found is None:
        return ""
    chosen = effective(revision.organization)
    return approval_of(found, decided_by=user_of(request), chosen=chosen).refusal


def text_before(revision: SkillRevision) -> Content | None:
    """Return what a revision is compared with: the skill of today while it waits, its base afterwards."""
    if revision.state == RevisionState.PROPOSED:
        return Content.of(revision.skill) if revision.skill else None
    return Content.of(revision.base) if revision.base else None
