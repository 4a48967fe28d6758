"""Experiences: what sessions taught, with the words that prove it, and the release of those in quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from mirix.admin_base import OrganizationFilter, display, two_lines
from mirix.admin_bulk import Bulk, BulkAdmin
from mirix.admin_days import DayFilter
from mirix.admin_forms import actor_of, ids_with_role
from mirix.templatetags.mirix_admin import ago
from mirix.tenants.principal import RELEASE_QUARANTINED, ROLES_WITH
from skills.admin.columns import per_cent
from skills.admin.evidence import view_experience
from skills.admin.finding import find_rows
from skills.admin.forms import ReleaseForm
from skills.admin.of_skill import ExperiencesOfSkill
from skills.models import SkillExperience
from skills.quarantine import release_experience

TYPE_COLOURS = {"Worth learning": "success", "Worth avoiding": "warning"}
QUARANTINED = "Quarantined"
STATUS_COLOURS = {"Pending": "info", "Consumed": "success", QUARANTINED: "danger"}
RELEASE_MANY = "admin:skills_skillexperience_release_many"
RELEASED = "The next run may use it."
NOT_QUARANTINED = "It is not quarantined."


@admin.register(SkillExperience)
class ExperienceAdmin(BulkAdmin):
    """One row per lesson; those in quarantine with the reason."""

    page_template = "admin/skills/skillexperience/page.html"
    heavy_fields = ("content", "details", "quote")
    list_display = (
        "lesson",
        "shown_type",
        "signal_type",
        "shown_importance",
        "shown_credibility",
        "shown_status",
        "session",
        "learned",
    )
    quarantined_display = (
        "lesson",
        "held_because",
        "shown_type",
        "signal_type",
        "shown_credibility",
        "session",
        "learned",
    )
    """The columns of the list of those in quarantine."""
    actions = ("release_selected",)
    list_filter = (
        "experience_type",
        "signal_type",
        "status",
        "verified",
        "quarantined",
        DayFilter,
        ExperiencesOfSkill,
        OrganizationFilter,
    )
    list_select_related = ("session",)
    search_fields = ("title", "topic", "session__session_id")
    search_help_text = "Words of the title or the topic, an id, or the beginning of a session's id"
    ordering = ("-created_at", "id")
    empty_title = "No experience yet"
    empty_text = (
        "An auto dream reads sealed sessions and writes down what they teach, with the quote it rests on."
    )
    empty_command = "./run auto_dream --organization ORGANIZATION --user USER"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        allowed = self.allowed(request)
        return find_rows(queryset, search_term, texts=("title", "topic"), sessions_of=allowed), False

    @display(description="Experience", ordering="title")
    def lesson(self, obj: SkillExperience) -> str:
        """Return title and topic."""
        return two_lines(obj.title, obj.topic)

    @display(description="Type", ordering="experience_type", label=TYPE_COLOURS)
    def shown_type(self, obj: SkillExperience) -> str:
        """Return whether to repeat it or to keep away from it."""
        return obj.get_experience_type_display()

    @display(description="Importance", ordering="importance")
    def shown_importance(self, obj: SkillExperience) -> str:
        """Return it in per cent."""
        return per_cent(obj.importance)

    @display(description="Credibility", ordering="credibility")
    def shown_credibility(self, obj: SkillExperience) -> str:
        """Return it in per cent."""
        return per_cent(obj.credibility)

    @display(description="Status", ordering="status", label=STATUS_COLOURS)
    def shown_status(self, obj: SkillExperience) -> str:
        """Return whether evolution has used it, or leaves it alone."""
        return QUARANTINED if obj.quarantined else obj.get_status_display()

    @display(description="Quarantined because")
    def held_because(self, obj: SkillExperience) -> str:
        """Return why evolution leaves it alone."""
        return obj.quarantine_reason or "–"

    @display(description="Learned", ordering="created_at")
    def learned(self, obj: SkillExperience) -> str:
        """Return how long ago that was."""
        return ago(obj.created_at)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show of those in quarantine why."""
        held = request.GET.get("quarantined__exact") == "1"
        return self.quarantined_display if held else self.list_display

    def page_context(self, request: HttpRequest, obj: SkillExperience) -> dict[str, Any]:
        """Return the evidence, the revisions that rest on it, and whether the user may release it."""
        allowed = self.acting_ids(request)
        return {
            "item": view_experience(obj),
            "form": ReleaseForm(),
            "may_release": allowed is None or obj.organization_id in allowed,
            "revisions": obj.revisions.order_by("-created_at", "id")[:50],
            "superseded": obj.superseded.order_by("-created_at", "id")[:50],
            "type_colour": TYPE_COLOURS[obj.get_experience_type_display()],
        }

    # ---- Release -----------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Add the release of one, and of many."""
        wrap = self.admin_site.admin_view
        name = "skills_skillexperience"
        return [
            path("release/", wrap(self.release_many_view), name=f"{name}_release_many"),
            path("<path:object_id>/release/", wrap(self.release_view), name=f"{name}_release"),
            *super().get_urls(),
        ]

    def acting_ids(self, request: HttpRequest) -> list[str] | None:
        """Return the organizations in which the user has the permission `release_quarantined`."""
        return ids_with_role(request, ROLES_WITH[RELEASE_QUARANTINED])

    def release_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Let evolution use an experience from now on; without a reason, ask for one."""
        experience = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.page_context(request, experience)["may_release"]:
            raise PermissionDenied
        form = ReleaseForm(request.POST)
        if not form.is_valid():
            return self.page(request, experience, {"form": form}, status=400)
        try:
            done = release_experience(
                experience=experience, actor=actor_of(request), reason=form.cleaned_data["reason"]
            )
        except SkillExperience.DoesNotExist as error:  # erased on the way
            raise Http404 from error
        self.message_user(request, *((RELEASED,) if done else (NOT_QUARANTINED, notes.WARNING)))
        return HttpResponseRedirect(reverse("admin:skills_skillexperience_change", args=[experience.pk]))

    @admin.action(description="Release selected experiences")
    def release_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks."""
        return self.lead_to(RELEASE_MANY, request, queryset)

    def release_many_view(self, request: HttpRequest) -> HttpResponse:
        """Ask why the experiences that the address names are released, and release them, each for itself."""

        def perform(experiences: Sequence[SkillExperience], sent: dict[str, Any]) -> dict[str, str]:
            done = {}
            for experience in experiences:
                try:
                    if release_experience(
                        experience=experience, actor=actor_of(request), reason=sent["reason"]
                    ):
                        done[experience.pk] = RELEASED
                except SkillExperience.DoesNotExist:
                    continue  # its line says that it has changed
            return done

        return self.serve_bulk(
            request,
            Bulk(
                verb="Release",
                past="released",
                noun="experience",
                text="Evolution may use them from then on, beginning with the next run. Read each one first: "
                "what only a tool said may be what somebody wants your agents to do.",
                columns={"Quarantined because": lambda experience: experience.quarantine_reason},
                will=lambda experience: RELEASED,
                refusal=lambda experience: "" if experience.quarantined else NOT_QUARANTINED,
                perform=perform,
                form=ReleaseForm,
            ),
        )
