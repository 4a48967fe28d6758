"""Skills: what agents retrieve now, every version before it, and the evidence behind it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse

from mirix.admin_base import OrganizationFilter, display, two_lines
from mirix.admin_erasing import ErasingAdmin
from mirix.admin_forms import actor_of, administers
from mirix.templatetags.mirix_admin import ago
from mirix.tenants.models import ErasureReceipt
from skills.admin.evidence import view_experience
from skills.admin.finding import find_rows
from skills.admin.history import HistoryAdmin
from skills.admin.lineage import drawing_of
from skills.admin.scope import MAX_TOGETHER
from skills.admin.travelling import TravellingAdmin
from skills.admin.use_filter import UseFilter, is_of_too_many
from skills.admin.use_of_one import use_context
from skills.erasure.single import erase_skill
from skills.models import ReviewDecision, RevisionState, Skill, SkillExperience, SkillStatus
from skills.selectors.lineage import lineage_of

STATUS_COLOURS = {"Active": "success", "Archived": "info", "Quarantined": "danger"}
MAX_EVIDENCE = 50


@admin.register(Skill)
class SkillAdmin(TravellingAdmin, HistoryAdmin, ErasingAdmin):
    """Published skills; review alone writes them."""

    page_template = "admin/skills/skill/page.html"
    heavy_fields = ("instructions", "triggers", "examples")
    list_display = ("skill", "version", "shown_status", "entry_type", "end_user", "organization", "updated")
    list_filter = ("status", "entry_type", UseFilter, OrganizationFilter)
    free_actions = ("export_selected",)
    list_select_related = ("organization", "end_user")
    search_fields = ("name", "description", "id")
    search_help_text = "Words of the name or of when to use it, or an id"
    ordering = ("-created_at", "id")
    empty_title = "No skill yet"
    empty_text = "Skills are proposals that a person approved. See what waits in Proposals."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, texts=("name", "description")), False

    @display(description="Skill", ordering="name")
    def skill(self, obj: Skill) -> str:
        """Return the name and when to use it."""
        return two_lines(obj.name, obj.description)

    @display(description="Status", ordering="status", label=STATUS_COLOURS)
    def shown_status(self, obj: Skill) -> str:
        """Return whether search finds it."""
        return obj.get_status_display()

    @display(description="Updated", ordering="updated_at")
    def updated(self, obj: Skill) -> str:
        """Return how long ago that was."""
        return ago(obj.updated_at)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list; where its filter is of too many organizations, say that one has to be chosen."""
        too_many = MAX_TOGETHER if is_of_too_many(request) else 0
        return super().changelist_view(request, {"too_many": too_many} | (extra_context or {}))

    erasing_title = "Erase this skill"
    erasing_text = (
        "The skill goes at once with all its versions, decisions and proposals, and nobody can bring it "
        "back. What it left in a skill that it was merged into goes as well, and that one goes back to "
        "review. To take it out of use and keep its past, archive it instead."
    )

    def erase(self, request: HttpRequest, obj: Skill) -> ErasureReceipt:
        """Erase the skill."""
        return erase_skill(skill=obj, actor=actor_of(request))

    def page_context(self, request: HttpRequest, obj: Skill) -> dict[str, Any]:
        """Return its past, where it comes from, how it is used, and the experiences that it rests on."""
        experiences = SkillExperience.objects.with_owner_of(obj)
        support = (
            experiences.filter(
                pk__in=experiences.filter(
                    revisions__skill=obj, revisions__state=RevisionState.PUBLISHED
                ).values("pk")
            )
            .select_related("turn", "session")
            .order_by((F("importance") * F("credibility")).desc(), "id")[:MAX_EVIDENCE]
        )
        history = self.history_context(request, obj)
        obj.refresh_from_db(fields=self.heavy_fields)
        return {
            "skill": obj,
            "may_erase": administers(request, obj.organization_id),
            "status_colour": STATUS_COLOURS[obj.get_status_display()],
            "set_aside": _set_aside(obj),
            "drawing": drawing_of(lineage_of(skill=obj), revisions_in_all=history["timeline"].total),
            "evidence": [view_experience(experience) for experience in support],
            "waiting": obj.revisions.filter(state=RevisionState.PROPOSED).first(),
            **use_context(obj),
            **history,
        }


def _set_aside(skill: Skill) -> ReviewDecision | None:
    """Return who took a skill out of use that no agent finds, when and why."""
    if skill.status == SkillStatus.ACTIVE or skill.current_revision is None:
        return None
    return skill.current_revision.decisions.order_by("-created_at", "-id").first()
