"""Intake records: what was accepted, and what became of each message."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from conversations.models import IntakeRecord, Session
from mirix.admin_base import OrganizationFilter, PageAdmin, display, two_lines

STATE_COLOURS = {"Queued": "info", "Stored": "success", "Partly stored": "warning", "Failed": "danger"}


@admin.register(IntakeRecord)
class IntakeRecordAdmin(PageAdmin):
    """Accepted requests; nothing that was accepted is lost without a line here."""

    list_title = "Intake"
    heavy_fields = ("body", "report", "error")
    page_template = "admin/conversations/intakerecord/page.html"
    list_display = (
        "record",
        "end_user",
        "client",
        "organization",
        "messages",
        "shown_state",
        "created_at",
    )
    list_filter = ("state", OrganizationFilter)
    list_select_related = ("organization", "end_user", "client")
    search_fields = ("id", "session_id__startswith", "end_user__user_id")
    ordering = ("-created_at", "id")
    empty_title = "Nothing was sent yet"
    empty_text = "Each request to POST /memory/add leaves a record here, with a report on every message."

    @display(description="Record", ordering="id")
    def record(self, obj: IntakeRecord) -> str:
        """Return its id, and the session that the messages are of."""
        return two_lines(obj.pk, f"session {obj.session_id}" if obj.session_id else "no session")

    @display(description="Messages", ordering="message_count")
    def messages(self, obj: IntakeRecord) -> int:
        """Return how many were sent."""
        return obj.message_count

    @display(description="State", ordering="state", label=STATE_COLOURS)
    def shown_state(self, obj: IntakeRecord) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    def page_context(self, request: HttpRequest, obj: IntakeRecord) -> dict[str, Any]:
        """Return the report, and the session that the turns went to."""
        session = Session.objects.with_owner_of(obj).filter(session_id=obj.session_id).first()
        kept = IntakeRecord.objects.with_owner_of(obj).filter(pk=obj.pk, body__isnull=False)
        return {
            "intake": obj,
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "session": session,
            "body_is_kept": kept.exists(),
            "report": obj.report if isinstance(obj.report, dict) else None,
        }
