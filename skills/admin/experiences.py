"""Experiences: what sessions taught, with the words that prove it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from mirix.admin_base import OrganizationFilter, PageAdmin, display, two_lines
from mirix.templatetags.mirix_admin import ago
from skills.admin.columns import per_cent
from skills.admin.evidence import view_experience
from skills.models import SkillExperience

TYPE_COLOURS = {"Worth learning": "success", "Worth avoiding": "warning"}
STATUS_COLOURS = {"Pending": "info", "Consumed": "success"}


@admin.register(SkillExperience)
class ExperienceAdmin(PageAdmin):
    """One row per lesson."""

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
    list_filter = (
        "experience_type",
        "signal_type",
        "status",
        "verified",
        "quarantined",
        OrganizationFilter,
    )
    list_select_related = ("session",)
    search_fields = ("title", "topic", "session__session_id")
    ordering = ("-created_at", "id")
    empty_title = "No experience yet"
    empty_text = (
        "An auto dream reads sealed sessions and writes down what they teach, with the quote it rests on."
    )
    empty_command = "./run auto_dream --organization ORGANIZATION --user USER"

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
        """Return whether evolution has used it."""
        return obj.get_status_display()

    @display(description="Learned", ordering="created_at")
    def learned(self, obj: SkillExperience) -> str:
        """Return how long ago that was."""
        return ago(obj.created_at)

    def page_context(self, request: HttpRequest, obj: SkillExperience) -> dict[str, Any]:
        """Return the evidence, and the revisions that rest on it."""
        return {
            "item": view_experience(obj),
            "revisions": obj.revisions.order_by("-created_at", "id")[:50],
            "type_colour": TYPE_COLOURS[obj.get_experience_type_display()],
        }
