"""Runs and the attempts in them: what was read, what came of it, what it cost."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from mirix.admin_base import OrganizationFilter, PageAdmin, display
from mirix.templatetags.mirix_admin import ago
from skills.models import AutoDreamRun, DistillationAttempt

STATE_COLOURS = {
    "Running": "info",
    "Queued": "info",
    "Finished": "success",
    "Failed": "danger",
    "Abandoned": "warning",
}
VERDICT_COLOURS = {
    "Experiences": "success",
    "Nothing worth keeping": "info",
    "To be tried again": "warning",
    "Given up": "danger",
}
MAX_ROWS = 200


@admin.register(AutoDreamRun)
class RunAdmin(PageAdmin):
    """Auto dreams."""

    page_template = "admin/skills/autodreamrun/page.html"
    heavy_fields = ("parameters", "counts", "notes", "error")
    list_display = (
        "id",
        "end_user",
        "organization",
        "trigger",
        "shown_state",
        "duration",
        "tokens",
        "started",
    )
    list_filter = ("state", "trigger", OrganizationFilter)
    list_select_related = ("organization", "end_user")
    search_fields = ("id", "end_user__user_id")
    ordering = ("-created_at", "id")
    empty_title = "No run yet"
    empty_text = "A run starts by itself when enough sessions are sealed, or by hand:"
    empty_command = "./run auto_dream --organization ORGANIZATION --user USER"

    @display(description="State", ordering="state", label=STATE_COLOURS)
    def shown_state(self, obj: AutoDreamRun) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    @display(description="Took")
    def duration(self, obj: AutoDreamRun) -> str:
        """Return the seconds between start and end."""
        return _seconds(obj) or "–"

    @display(description="Started", ordering="created_at")
    def started(self, obj: AutoDreamRun) -> str:
        """Return how long ago that was."""
        return ago(obj.started_at or obj.created_at)

    def page_context(self, request: HttpRequest, obj: AutoDreamRun) -> dict[str, Any]:
        """Return what the run read, wrote and refused."""
        return {
            "run": obj,
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "duration": _seconds(obj),
            "counts": [(name, _count(value)) for name, value in obj.counts.items()],
            "attempts": obj.attempts.select_related("session").order_by("created_at", "id")[:MAX_ROWS],
            "revisions": obj.revisions.order_by("created_at", "id")[:MAX_ROWS],
        }


def _count(value: Any) -> str:
    """Return a count in words: the length of a list, the numbers of a breakdown that are not 0."""
    match value:
        case list():
            return str(len(value))
        case dict():
            return ", ".join(f"{number} {name}" for name, number in value.items() if number) or "0"
    return str(value)


def _seconds(run: AutoDreamRun) -> str:
    if run.started_at is None or run.finished_at is None:
        return ""
    return f"{(run.finished_at - run.started_at).total_seconds():.1f} s"


@admin.register(DistillationAttempt)
class AttemptAdmin(PageAdmin):
    """Calls of a distiller, one per session and try, with what it answered."""

    page_template = "admin/skills/distillationattempt/page.html"
    heavy_fields = ("raw_reply", "error")
    list_display = (
        "id",
        "session",
        "run",
        "distiller",
        "shown_verdict",
        "duration_ms",
        "tokens",
        "created_at",
    )
    list_filter = ("verdict", "distiller", OrganizationFilter)
    list_select_related = ("session", "run")
    search_fields = ("id", "session__session_id", "run__id")
    ordering = ("-created_at", "id")
    empty_title = "No attempt yet"
    empty_text = "Each reading of a session by a distiller leaves a row here, whatever came of it."

    @display(description="Verdict", ordering="verdict", label=VERDICT_COLOURS)
    def shown_verdict(self, obj: DistillationAttempt) -> str:
        """Return how it ended."""
        return obj.get_verdict_display()

    @display(description="Tokens")
    def tokens(self, obj: DistillationAttempt) -> int:
        """Return those of prompt and completion together."""
        return obj.prompt_tokens + obj.completion_tokens

    def page_context(self, request: HttpRequest, obj: DistillationAttempt) -> dict[str, Any]:
        """Return the reply, and the experiences that came of it."""
        return {
            "attempt": obj,
            "verdict_colour": VERDICT_COLOURS[obj.get_verdict_display()],
            "experiences": obj.experiences.order_by("id")[:MAX_ROWS],
        }
