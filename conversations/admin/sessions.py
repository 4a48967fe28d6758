"""Sessions: the list, the transcript as a conversation, and closing a session by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from conversations.admin.finding import errors_around, search_turns
from conversations.admin.reach import find_rows
from conversations.admin.transcript import Pin, page_of, turn_url, turns_of_page, view_turns
from conversations.models import ConversationMessage, Session, SessionState
from conversations.operating import close
from mirix.admin_base import OrganizationFilter, PageAdmin, display
from mirix.admin_forms import actor_of, operates
from mirix.text import clean_text, whole_number

STATE_COLOURS = {"Open": "info", "Sealed": "warning", "Distilled": "success", "Dead": "danger"}
MAX_WORD_CHARS = 200


@admin.register(Session)
class SessionAdmin(PageAdmin):
    """Pieces of work, each with its transcript; the app of skills adds what was learned from them."""

    page_template = "admin/conversations/session/page.html"
    heavy_fields = ("last_error",)
    list_display = (
        "session_id",
        "end_user",
        "organization",
        "shown_state",
        "tag",
        "turn_count",
        "last_turn_at",
        "created_at",
    )
    list_filter = ("state", "tag", OrganizationFilter)
    list_select_related = ("organization", "end_user")
    search_fields = ("session_id__startswith", "id", "end_user__user_id")
    search_help_text = "Beginning of a session's id, or an end user"
    ordering = ("-created_at", "id")
    sortable_by = ("created_at",)
    empty_title = "No session yet"
    empty_text = "Agents send what they said and did to POST /memory/add; or bring transcripts you have:"
    empty_command = "./run import_sessions FILE.jsonl --organization ORGANIZATION --user USER"

    @display(description="State", label=STATE_COLOURS)
    def shown_state(self, obj: Session) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, self.allowed(request)), False

    def pins(self, request: HttpRequest, session: Session, turns: Sequence[ConversationMessage]) -> list[Pin]:
        """Return what is shown beside the turns; nothing at this floor of the house."""
        return []

    def page_context(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        """Return one page of the transcript: the one asked for, else the first that has turns left.

        With a word to look for, the turns that say it instead.
        """
        last_page = page_of(obj.last_seq)
        first_page = page_of(min(obj.pruned_through + 1, obj.last_seq))
        asked = whole_number(request.GET.get("page", ""), low=1, high=last_page)
        page = first_page if asked is None else asked
        word = clean_text(request.GET.get("q", "")).strip()[:MAX_WORD_CHARS]
        errors = errors_around(obj, page)
        found = None
        if word:
            after = whole_number(request.GET.get("after", ""), low=0, high=obj.last_seq)
            found = search_turns(obj, word, after or 0)
        turns = turns_of_page(obj, page) if found is None else found.turns
        pins = self.pins(request, obj, turns)
        next_errors = errors.next_urls if errors and not word else {}
        return {
            "session": obj,
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "turns": view_turns(turns, pins, word=word, next_errors=next_errors),
            "page_number": page,
            "first_page": first_page,
            "last_page": last_page,
            "pruned_count": obj.last_seq - obj.turn_count if obj.pruned_at else 0,
            "errors": errors,
            "word": word,
            "found": found,
            "address": turn_url(obj.pk, None),
            "may_close": obj.state == SessionState.OPEN and operates(request, obj.organization_id),
        }

    def get_urls(self) -> list[URLPattern]:
        """Add the closing of a session."""
        view = self.admin_site.admin_view(self.close_view)
        return [
            path("<path:object_id>/close/", view, name="conversations_session_close"),
            *super().get_urls(),
        ]

    def close_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Close a session as its caller would, so that it can be learned from."""
        session = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not operates(request, session.organization_id):
            raise PermissionDenied
        was_open = session.state == SessionState.OPEN
        close(session=session, actor=actor_of(request))
        self.message_user(request, "The session is closed." if was_open else "It was closed already.")
        return HttpResponseRedirect(reverse("admin:conversations_session_change", args=[session.pk]))
