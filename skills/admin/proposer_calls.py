"""Questions to a proposer's model: what they were about, what came back, and what of it was refused."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mirix.admin_base import OrganizationFilter, PageAdmin, display, two_lines
from mirix.admin_days import DayFilter
from mirix.shapes import as_list, as_texts
from skills.admin.finding import find_rows
from skills.admin.replies import reply_of, with_reply
from skills.admin.runs import MAX_REPLY_CHARS, MAX_ROWS, VERDICT_COLOURS, EntriesOf, duration_of
from skills.models import ProposerCall, SkillExperience, Verdict

VERDICTS = {
    Verdict.OK: "Answered",
    Verdict.EMPTY: "Nothing to write",
    Verdict.RETRY: "No answer",
    Verdict.DEAD: "No answer, given up",
}


@admin.register(ProposerCall)
class ProposerCallAdmin(PageAdmin):
    """Questions about one topic each."""

    page_template = "admin/skills/proposercall/page.html"
    heavy_fields = ("raw_reply", "refused", "error")
    list_display = ("asked", "run", "model", "shown_verdict", "refusals", "took", "tokens", "created_at")
    list_filter = ("verdict", DayFilter, OrganizationFilter)
    list_select_related = ("run",)
    search_fields = ("id", "topic", "run__id")
    search_help_text = "Words of the topic, or the id of a question or a run"
    ordering = ("-created_at", "id")
    empty_title = "No question yet"
    empty_text = "Each question to a model about the lessons of a topic leaves a row here. Rules ask none."

    def annotated(self, rows: QuerySet) -> QuerySet:
        """Count what was refused of each answer."""
        return rows.annotate(refused_count=EntriesOf("refused"))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Find by what indexes know."""
        return find_rows(queryset, search_term, texts=("topic",), keys=("pk", "run")), False

    @display(description="About")
    def asked(self, obj: ProposerCall) -> str:
        """Return the topic, and the question's id."""
        return two_lines(obj.topic, obj.pk)

    @display(description="Came to", ordering="verdict")
    def shown_verdict(self, obj: ProposerCall) -> str:
        """Return how it ended."""
        return VERDICTS[Verdict(obj.verdict)]

    @display(description="Refused")
    def refusals(self, obj: Any) -> str:
        """Return how many operations of the answer were not written."""
        return str(obj.refused_count or "–")

    @display(description="Took", ordering="duration_ms")
    def took(self, obj: ProposerCall) -> str:
        """Return the time from the first request to the last answer."""
        return duration_of(obj.duration_ms)

    @display(description="Tokens")
    def tokens(self, obj: ProposerCall) -> int:
        """Return those of prompt and completion together."""
        return obj.prompt_tokens + obj.completion_tokens

    def page_context(self, request: HttpRequest, obj: ProposerCall) -> dict[str, Any]:
        """Return the lessons that it showed, what was refused, and the answer as far as it is shown."""
        rows = type(obj).objects.with_owner_of(obj).filter(pk=obj.pk)
        shown = with_reply(rows, chars=MAX_REPLY_CHARS, also="refused").get()
        lessons = SkillExperience.objects.with_owner_of(obj).filter(pk__in=as_texts(obj.experience_ids))
        return {
            "call": obj,
            "verdict": VERDICTS[Verdict(obj.verdict)],
            "verdict_colour": VERDICT_COLOURS[obj.get_verdict_display()],
            "took": duration_of(obj.duration_ms),
            "lessons": lessons.order_by("pk")[:MAX_ROWS],
            "refused": [part for part in as_list(obj.refused) if isinstance(part, dict)][:MAX_ROWS],
            "reply": reply_of(shown, chars=MAX_REPLY_CHARS),
            "reply_chars": shown.reply_chars,
        }
