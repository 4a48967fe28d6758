"""Intake records: what was accepted, what became of each message, and replaying what was left behind."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib import messages as notes
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from conversations.account import lines
from conversations.admin.kept import job_of, kept_messages
from conversations.admin.reach import find_rows
from conversations.admin.transcript import turn_url
from conversations.models import IntakeRecord, IntakeState, Session
from conversations.operating import AT_MOST, Replayed, replay_requests
from conversations.selectors import left_behind
from mirix.admin_base import NotOfferedError, OrganizationFilter, PageAdmin, display, two_lines
from mirix.admin_forms import actor_of, operated_ids, operates

STATE_COLOURS = {"Queued": "info", "Stored": "success", "Partly stored": "warning", "Failed": "danger"}
OUTCOMES = {
    "stored": ("Stored", "success"),
    "truncated": ("Stored, cut", "warning"),
    "duplicate": ("Was there already", ""),
    "skipped": ("Left out", ""),
    "unreadable": ("Not understood", "danger"),
}
NOTHING_LEFT = "Nothing of this waits to be replayed."
CHANGELIST = "admin:conversations_intakerecord_changelist"


@admin.register(IntakeRecord)
class IntakeRecordAdmin(PageAdmin):
    """Accepted requests; nothing that was accepted is lost without a line here."""

    list_title = "Intake"
    heavy_fields = ("body", "report", "error", "answer")
    page_template = "admin/conversations/intakerecord/page.html"
    before_list = "admin/conversations/intakerecord/before.html"
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
    search_help_text = "Id of a request, beginning of a session's id, or an end user"
    ordering = ("-created_at", "id")
    sortable_by = ("created_at",)
    actions = ("replay_selected",)
    empty_title = "Nothing was sent yet"
    empty_text = "Each request to POST /memory/add leaves a record here, with a report on every message."

    @display(description="Record")
    def record(self, obj: IntakeRecord) -> str:
        """Return its id, and the session that the messages are of."""
        return two_lines(obj.pk, f"session {obj.session_id}" if obj.session_id else "no session")

    @display(description="Messages")
    def messages(self, obj: IntakeRecord) -> int:
        """Return how many were sent."""
        return obj.message_count

    @display(description="State", label=STATE_COLOURS)
    def shown_state(self, obj: IntakeRecord) -> str:
        """Return the state in a word."""
        return obj.get_state_display()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, self.allowed(request)), False

    # ---- The page of a request ---------------------------------------------------------------------

    def page_context(self, request: HttpRequest, obj: IntakeRecord) -> dict[str, Any]:
        """Return the report by message, the session that the turns went to, and what is kept of the body."""
        session = Session.objects.with_owner_of(obj).filter(session_id=obj.session_id).first()
        report = obj.report if isinstance(obj.report, dict) else None
        kept = kept_messages(obj)
        return {
            "intake": obj,
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "session": session,
            "turns_url": self._turns_url(obj, session),
            "kept": kept,
            "report": report,
            "lines": [(line, *OUTCOMES[line.outcome]) for line in lines(report, obj.message_count)]
            if report
            else [],
            "job": job_of(obj) if obj.state == IntakeState.QUEUED else None,
            "may_replay": kept is not None and operates(request, obj.organization_id),
        }

    def _turns_url(self, obj: IntakeRecord, session: Session | None) -> str:
        first = obj.turns.order_by("seq").values_list("seq", flat=True).first() if session else None
        return turn_url(session.pk, first) if session and first else ""

    # ---- Replay ------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """Add the replay of one request, and of many."""
        wrap = self.admin_site.admin_view
        name = "conversations_intakerecord"
        return [
            path("replay/", wrap(self.replay_many_view), name=f"{name}_replay_many"),
            path("<path:object_id>/replay/", wrap(self.replay_view), name=f"{name}_replay"),
            *super().get_urls(),
        ]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Offer to replay where the user may operate."""
        return {} if operated_ids(request) == [] else super().get_actions(request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list, and above it how much can be replayed; refuse an action of who only reads."""
        if "action" in request.POST and self.has_view_permission(request) and not self.get_actions(request):
            raise PermissionDenied
        rows = left_behind(self.model.objects.for_organizations(self.allowed(request)))
        count = rows.order_by()[: AT_MOST + 1].count()
        waiting = {
            "replayable": count,
            "replayable_count": _at_most(count),
            "may_replay": operated_ids(request) != [],
        }
        return super().changelist_view(request, waiting | (extra_context or {}))

    @admin.action(description="Replay selected requests")
    def replay_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse:
        """Lead to the page that asks; it names the requests, or the list that all were selected of."""
        address = reverse("admin:conversations_intakerecord_replay_many")
        if request.POST.get("select_across") == "1":
            return HttpResponseRedirect(f"{address}?{request.GET.urlencode()}")
        ids = ",".join(
            queryset.order_by("created_at", "pk").values_list("pk", flat=True)[: self.list_per_page]
        )
        return HttpResponseRedirect(f"{address}?{urlencode({'ids': ids}, safe=',')}")

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Replay one request now."""
        record = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not operates(request, record.organization_id):
            raise PermissionDenied
        chosen = self._replayable(request, self.get_queryset(request).filter(pk=record.pk))
        self._say(request, replay_requests(records=chosen, actor=actor_of(request)))
        return HttpResponseRedirect(reverse("admin:conversations_intakerecord_change", args=[record.pk]))

    def replay_many_view(self, request: HttpRequest) -> HttpResponse:
        """Ask whether to replay the requests that the address names, by ids or by a query of the list."""
        if operated_ids(request) == [] or not self.has_view_permission(request):
            raise PermissionDenied
        try:
            chosen = self._replayable(request, self._chosen(request))
        except NotOfferedError:
            return HttpResponseRedirect(reverse(CHANGELIST))
        back = reverse(CHANGELIST)
        if "ids" not in request.GET and request.GET:
            back = f"{back}?{request.GET.urlencode()}"
        if request.method == "POST":
            self._say(request, replay_requests(records=chosen, actor=actor_of(request)))
            return HttpResponseRedirect(back)
        count = chosen.order_by()[: AT_MOST + 1].count()
        return self._ask(request, count, back)

    def _chosen(self, request: HttpRequest) -> QuerySet:
        if "ids" in request.GET:
            ids = request.GET["ids"].replace("\x00", "").split(",")[: self.list_per_page]
            return self.get_queryset(request).filter(pk__in=ids)
        return self.get_changelist_instance(request).get_queryset(request)

    def _replayable(self, request: HttpRequest, rows: QuerySet) -> QuerySet:
        """Return those of `rows` that can be replayed, and by this user."""
        allowed = operated_ids(request)
        return left_behind(rows if allowed is None else rows.filter(organization__in=allowed))

    def _ask(self, request: HttpRequest, count: int, back: str) -> HttpResponse:
        title = f"Replay {_at_most(count)} request{'' if count == 1 else 's'}"
        request.current_app = self.admin_site.name
        [crumb] = self.breadcrumbs()
        request.__dict__["breadcrumbs"] = [crumb | {"link": back}, {"title": "Replay"}]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "title": title,
            "count": count,
            "at_most": AT_MOST,
            "back": back,
        }
        return TemplateResponse(request, "admin/conversations/intakerecord/replay.html", context)

    def _say(self, request: HttpRequest, done: Replayed) -> None:
        if done.queued:
            self.message_user(
                request, f"The worker replays {_requests(done.queued)}; the list shows how far it is."
            )
        elif not done.states:
            self.message_user(request, NOTHING_LEFT, notes.WARNING)
        else:
            number = done.states.total()
            became = ", ".join(
                f"{count} {IntakeState(state).label.lower()}" for state, count in done.states.most_common()
            )
            turns = f"{done.turns} turn{'' if done.turns == 1 else 's'}"
            clean = done.states[IntakeState.STORED] == number
            self.message_user(
                request,
                f"Replayed {_requests(number)}: {became}; {turns} stored.",
                notes.SUCCESS if clean else notes.WARNING,
            )


def _requests(number: int) -> str:
    return f"{number} request{'' if number == 1 else 's'}"


def _at_most(count: int) -> str:
    return f"more than {AT_MOST}" if count > AT_MOST else str(count)
