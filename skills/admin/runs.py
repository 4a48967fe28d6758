"""Runs, also while they go on, and the attempts in them: what was read, what came of it, what it cost."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.contrib import admin
from django.db.models import Func, IntegerField, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.http import quote_etag

from mirix.admin_base import OrganizationFilter, PageAdmin, display, two_lines
from mirix.admin_days import DayFilter
from mirix.shapes import as_dict, as_list
from mirix.templatetags.mirix_admin import ago
from skills.admin.finding import find_rows
from skills.admin.replies import reply_of, with_reply
from skills.distillation.attacks import FLAGS
from skills.distillation.llm import LlmDistiller
from skills.distillation.offline import OfflineDistiller
from skills.models import AutoDreamRun, DistillationAttempt, RunState
from skills.progress import is_open, progress_of
from skills.runs import stale

STATE_COLOURS = {
    "Running": "info",
    "Queued": "info",
    "Finished": "success",
    "Failed": "danger",
    "Interrupted": "warning",
    "Abandoned": "warning",
}
VERDICT_COLOURS = {
    "Experiences": "success",
    "Nothing worth keeping": "info",
    "To be tried again": "warning",
    "Given up": "danger",
}
MAX_ROWS = 200
MAX_REPLY_CHARS = 100_000
REFRESH_SECONDS = 3
"""How often the page of a run that goes on asks what has changed."""
LIVE_TEMPLATE = "admin/skills/autodreamrun/live.html"


class EntriesOf(Func):
    """The number of entries of a JSON list; none of what is no list."""

    template = (
        "CASE WHEN jsonb_typeof(%(expressions)s) = 'array' THEN jsonb_array_length(%(expressions)s) END"
    )
    output_field = IntegerField()


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
    list_filter = ("state", "trigger", DayFilter, OrganizationFilter)
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

    def get_urls(self) -> list[URLPattern]:
        """Add what changes on the page of a run that goes on."""
        view = self.admin_site.admin_view(self.live_view)
        return [path("<path:object_id>/live/", view, name="skills_autodreamrun_live"), *super().get_urls()]

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the part of the page that changes, or 304 where it is as the asker has it; it only reads.

        The header `X-Run-State` says `open` or `over`: whether to ask again.
        """
        run = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        html = render_to_string(LIVE_TEMPLATE, self.page_context(request, run), request)
        etag = quote_etag(sha256(html.encode()).hexdigest())
        headers = {"ETag": etag, "X-Run-State": "open" if is_open(run) else "over"}
        if request.headers.get("If-None-Match") == etag:
            return HttpResponse(status=304, headers=headers)
        return HttpResponse(html, headers=headers)

    def page_context(self, request: HttpRequest, obj: AutoDreamRun) -> dict[str, Any]:
        """Return how far the run is, and what it read, wrote, put off and refused."""
        progress = progress_of(obj)
        attempts = obj.attempts.select_related("session").defer("raw_reply", "dropped", "session__last_error")
        rows = type(obj).objects.with_owner_of(obj).filter(stale(), pk=obj.pk)
        return {
            "run": obj,
            "notes": as_list(obj.notes),
            "parameters": as_dict(obj.parameters).items(),
            "state_colour": STATE_COLOURS[obj.get_state_display()],
            "duration": _seconds(obj),
            "progress": progress,
            "refresh": REFRESH_SECONDS if is_open(obj) else 0,
            "is_silent": obj.state == RunState.RUNNING and rows.exists(),
            "counts": [(name, _count(value)) for name, value in progress.counts.items()],
            "attempts": attempts.annotate(dropped_count=EntriesOf("dropped")).order_by("created_at", "id")[
                :MAX_ROWS
            ],
            "proposer_calls": obj.proposer_calls.defer("raw_reply", "refused", "experience_ids")
            .annotate(refused_count=EntriesOf("refused"))
            .order_by("created_at", "id")[:MAX_ROWS],
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


class DistillerFilter(admin.SimpleListFilter):
    """Filter by distiller; offers all there are, without asking the table, which Django would read whole."""

    title = "distiller"
    parameter_name = "distiller"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the distillers."""
        return [(each.name, each.name) for each in (LlmDistiller, OfflineDistiller)]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        """Narrow the list to the chosen distiller."""
        return queryset.filter(distiller=self.value()) if self.value() else queryset


@admin.register(DistillationAttempt)
class AttemptAdmin(PageAdmin):
    """Readings of a session by a distiller, one per try, with what it answered."""

    page_template = "admin/skills/distillationattempt/page.html"
    heavy_fields = ("raw_reply", "error", "dropped")
    list_display = (
        "reading",
        "run",
        "made_by",
        "shown_verdict",
        "dropped_parts",
        "watch",
        "took",
        "tokens",
        "created_at",
    )
    list_filter = ("verdict", DistillerFilter, DayFilter, OrganizationFilter)
    list_select_related = ("session", "run")
    search_fields = ("id", "session__session_id", "run__id")
    search_help_text = "The id of an attempt or a run, or the beginning of a session's id"
    ordering = ("-created_at", "id")
    empty_title = "No attempt yet"
    empty_text = "Each reading of a session by a distiller leaves a row here, whatever came of it."

    def annotated(self, rows: QuerySet) -> QuerySet:
        """Count what was dropped of each reply."""
        return rows.annotate(dropped_count=EntriesOf("dropped"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, keys=("pk", "run"), sessions_of=self.allowed(request)), False

    @display(description="Attempt")
    def reading(self, obj: DistillationAttempt) -> str:
        """Return the session that was read, and the attempt's id."""
        return two_lines(obj.session.session_id, obj.pk)

    @display(description="By")
    def made_by(self, obj: DistillationAttempt) -> str:
        """Return the distiller, and the model that it asked."""
        return two_lines(obj.distiller, obj.model) if obj.model else obj.distiller

    @display(description="Verdict", ordering="verdict", label=VERDICT_COLOURS)
    def shown_verdict(self, obj: DistillationAttempt) -> str:
        """Return how it ended."""
        return obj.get_verdict_display()

    @display(description="Dropped")
    def dropped_parts(self, obj: Any) -> str:
        """Return how many parts of the reply gave no experience."""
        return str(obj.dropped_count or "–")

    @display(description="To watch")
    def watch(self, obj: DistillationAttempt) -> str:
        """Return how much in the session tries to steer its reader; the words show on hovering."""
        if not (flags := _flags(obj)):
            return "–"
        words = "; ".join(meaning for _, meaning in flags)
        return format_html('<span class="mx-badge mx-badge--warning" title="{}">{}</span>', words, len(flags))

    @display(description="Took", ordering="duration_ms")
    def took(self, obj: DistillationAttempt) -> str:
        """Return the time from the first request to the last answer."""
        return duration_of(obj.duration_ms)

    @display(description="Tokens")
    def tokens(self, obj: DistillationAttempt) -> int:
        """Return those of prompt and completion together."""
        return obj.prompt_tokens + obj.completion_tokens

    def get_urls(self) -> list[URLPattern]:
        """Add the reply as a file."""
        view = self.admin_site.admin_view(self.reply_view)
        return [
            path("<path:object_id>/reply/", view, name="skills_distillationattempt_reply"),
            *super().get_urls(),
        ]

    def page_context(self, request: HttpRequest, obj: DistillationAttempt) -> dict[str, Any]:
        """Return the reply as far as it is shown, what was dropped of it, and what came of it."""
        rows = type(obj).objects.with_owner_of(obj).filter(pk=obj.pk)
        shown = with_reply(rows, chars=MAX_REPLY_CHARS).get()
        parts = [part for part in as_list(obj.dropped) if isinstance(part, dict)]
        return {
            "attempt": obj,
            "verdict_colour": VERDICT_COLOURS[obj.get_verdict_display()],
            "reply": reply_of(shown, chars=MAX_REPLY_CHARS),
            "reply_chars": shown.reply_chars,
            "took": duration_of(obj.duration_ms),
            "dropped": parts[:MAX_ROWS],
            "dropped_count": len(parts),
            "flags": _flags(obj),
            "experiences": obj.experiences.order_by("id")[:MAX_ROWS],
        }

    def reply_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send the whole reply as a text file, which no browser takes for a page. It only reads."""
        attempt = self.visible_object(request, object_id)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not attempt.raw_reply:
            raise Http404
        return HttpResponse(
            attempt.raw_reply,
            content_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{attempt.pk}.txt"'},
        )


def _flags(attempt: DistillationAttempt) -> list[tuple[str, str]]:
    """Return the flags of the session as it was read, each with what it means."""
    return [(str(flag), FLAGS.get(str(flag), str(flag))) for flag in as_list(attempt.flags)]


def duration_of(ms: int) -> str:
    """Return how long something took, in seconds above one."""
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1_000:.1f} s"
