"""Sessions: the list, the transcript as a conversation, and closing or retrying a session by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from conversations.admin.finding import errors_around, search_turns
from conversations.admin.reach import find_rows
from conversations.admin.transcript import Pin, page_of, turn_url, turns_of_page, view_turns
from conversations.models import ConversationMessage, Session, SessionState
from conversations.operating import close, retry_session, retry_sessions
from conversations.selectors import has_failed
from mirix.admin_base import OrganizationFilter, display, two_lines
from mirix.admin_bulk import Bulk, BulkAdmin
from mirix.admin_forms import actor_of, operated_ids, operates
from mirix.text import clean_text, shorten, whole_number

STATE_COLOURS = {"Open": "info", "Sealed": "warning", "Distilled": "success", "Dead": "danger"}
MAX_WORD_CHARS = 200
RETRIED = "The next run reads it again."
MAX_ERROR_CHARS = 300
RETRY_MANY = "admin:conversations_session_retry_many"


@admin.register(Session)
class SessionAdmin(BulkAdmin):
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
    actions = ("retry_selected",)
    given_up_display = ("why", "end_user", "organization", "attempts", "last_turn_at")
    """The columns of the list of those that were given up."""
    empty_title = "No session yet"
    empty_text = "Agents send what they said and did to POST /memory/add; or bring transcripts you have:"
    empty_command = "./run import_sessions FILE.jsonl --organization ORGANIZATION --user USER"

    @display(description="State", label=STATE_COLOURS)
    def shown_state(self, obj: Session) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    @display(description="Session")
    def why(self, obj: Any) -> str:
        """Return which session, and why it was given up."""
        return two_lines(obj.session_id, obj.error_begins)

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show of sessions that were given up why."""
        return self.given_up_display if lists_given_up(request) else self.list_display

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the sessions; those that were given up with the beginning of their error."""
        rows = super().get_queryset(request)
        return (
            rows.annotate(error_begins=Left("last_error", MAX_ERROR_CHARS))
            if lists_given_up(request)
            else rows
        )

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
            "may_retry": has_failed(obj) and operates(request, obj.organization_id),
        }

    # ---- Closing and retrying ------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Add the closing of a session, and the retry of one and of many."""
        wrap = self.admin_site.admin_view
        name = "conversations_session"
        return [
            path("retry/", wrap(self.retry_many_view), name=f"{name}_retry_many"),
            path("<path:object_id>/close/", wrap(self.close_view), name=f"{name}_close"),
            path("<path:object_id>/retry/", wrap(self.retry_view), name=f"{name}_retry"),
            *super().get_urls(),
        ]

    def close_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Close a session as its caller would, so that it can be learned from."""

        def act(session: Session) -> None:
            was_open = session.state == SessionState.OPEN
            close(session=session, actor=actor_of(request))
            self.message_user(request, "The session is closed." if was_open else "It was closed already.")

        return self._act(request, object_id, act)

    def retry_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Have a session read again that could not be learned from."""

        def act(session: Session) -> None:
            if retry_session(session=session, actor=actor_of(request)):
                self.message_user(request, "The next run reads it again.")
            else:
                self.message_user(request, _why_not(session), notes.WARNING)

        return self._act(request, object_id, act)

    def _act(self, request: HttpRequest, object_id: str, act: Callable[[Session], None]) -> HttpResponse:
        """Let whoever operates do something with a session, and show it again."""
        session = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not operates(request, session.organization_id):
            raise PermissionDenied
        act(session)
        return HttpResponseRedirect(reverse("admin:conversations_session_change", args=[session.pk]))

    def acting_ids(self, request: HttpRequest) -> list[str] | None:
        """Return the organizations in which the user may operate."""
        return operated_ids(request)

    @admin.action(description="Retry selected sessions")
    def retry_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks."""
        return self.lead_to(RETRY_MANY, request, queryset)

    def retry_many_view(self, request: HttpRequest) -> HttpResponse:
        """Ask whether to retry the sessions that the address names, and retry them."""

        def perform(sessions: Sequence[Session], sent: dict[str, Any]) -> dict[str, str]:
            done = retry_sessions(sessions=sessions, actor=actor_of(request))
            return dict.fromkeys(done, RETRIED)

        return self.serve_bulk(
            request,
            Bulk(
                verb="Retry",
                past="retried",
                noun="session",
                text="For when the cause is gone: each has all of its attempts again, and the next run of "
                "its end user reads it.",
                columns={"Last error": lambda session: shorten(session.last_error, MAX_ERROR_CHARS)},
                will=lambda session: RETRIED,
                refusal=_why_not,
                perform=perform,
            ),
        )


def lists_given_up(request: HttpRequest) -> bool:
    """Return whether the page is the list of the sessions that were given up."""
    here = request.path == reverse("admin:conversations_session_changelist")
    return here and request.GET.get("state__exact") == SessionState.DEAD


def _why_not(session: Session) -> str:
    """Return why a session cannot be retried; empty where it can."""
    if has_failed(session):
        return ""
    if session.state == SessionState.DEAD:
        return "Its turns were pruned; nothing is left to learn from."
    return "It has not failed."
