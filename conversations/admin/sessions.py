"""Sessions: the list, and the transcript as a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from conversations.admin.transcript import Pin, page_of, turns_of_page, view_turns
from conversations.models import ConversationMessage, Session
from mirix.admin_base import OrganizationFilter, PageAdmin, display

STATE_COLOURS = {"Open": "info", "Sealed": "warning", "Distilled": "success", "Dead": "danger"}


@admin.register(Session)
class SessionAdmin(PageAdmin):
    """Pieces of work, each with its transcript; the app of skills adds what was learned from them."""

    page_template = "admin/conversations/session/page.html"
    list_display = (
        "session_id",
        "end_user",
        "organization",
        "shown_state",
        "tag",
        "turn_count",
        "last_turn_at",
    )
    list_filter = ("state", "tag", OrganizationFilter)
    list_select_related = ("organization", "end_user")
    search_fields = ("session_id__startswith", "id", "end_user__user_id")
    ordering = ("-created_at", "id")
    empty_title = "No session yet"
    empty_text = "Agents send what they said and did to POST /memory/add; or bring transcripts you have:"
    empty_command = "./run import_sessions FILE.jsonl --organization ORGANIZATION --user USER"

    @display(description="State", ordering="state", label=STATE_COLOURS)
    def shown_state(self, obj: Session) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    def pins(self, request: HttpRequest, session: Session, turns: Sequence[ConversationMessage]) -> list[Pin]:
        """Return what is shown beside the turns; nothing at this floor of the house."""
        return []

    def page_context(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        """Return one page of the transcript: the one asked for, else the first that has turns left."""
        last_page = page_of(obj.last_seq)
        first_page = page_of(min(obj.pruned_through + 1, obj.last_seq))
        page = _number(request.GET.get("page", ""), first_page, last_page)
        turns = turns_of_page(obj, page)
        return {
            "session": obj,
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "turns": view_turns(turns, self.pins(request, obj, turns)),
            "page_number": page,
            "first_page": first_page,
            "last_page": last_page,
            "pruned_count": obj.last_seq - obj.turn_count if obj.pruned_at else 0,
        }


def _number(text: str, first: int, last: int) -> int:
    """Return the page that was asked for, or `first` where that is none."""
    known = text.isascii() and text.isdigit() and len(text) < 10
    return int(text) if known and 1 <= int(text) <= last else first
