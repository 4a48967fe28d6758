"""Sessions again, with what was learned from them: pins on the turns, and the attempts of the distiller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from conversations.admin.sessions import SessionAdmin
from conversations.admin.transcript import Pin, turn_url
from conversations.models import ConversationMessage, Session, SessionState, SessionTag
from conversations.selectors import has_failed
from mirix.admin_base import display
from mirix.admin_forms import actor_of, operates
from mirix.tenants.owners import Owner
from skills.admin.evidence import KINDS
from skills.admin.of_skill import SessionsOfSkill
from skills.admin.replies import reply_of, with_reply
from skills.models import RevisionState, SkillExperience, SkillRevision
from skills.operating import start_run

MAX_ATTEMPTS_SHOWN = 20
MAX_CAME_OF = 500
MAX_FAILURES, MAX_REPLY_CHARS = 5, 20_000
"""Of a session that failed, so many attempts are shown with so much of their replies."""

admin.site.unregister(Session)


@admin.register(Session)
class LearnedSessionAdmin(SessionAdmin):
    """The list with a count of lessons, the transcript with the lessons where they were learned."""

    page_template = "admin/skills/session/page.html"
    list_display = (
        "session_id",
        "end_user",
        "organization",
        "shown_state",
        "turn_count",
        "lessons",
        "last_turn_at",
        "created_at",
    )
    list_filter: Any = (*SessionAdmin.list_filter, SessionsOfSkill)

    def annotated(self, rows: QuerySet) -> QuerySet:
        """Count the experiences of each session."""
        found = SkillExperience.objects.filter(session=OuterRef("pk")).order_by().values("session")
        count = Subquery(found.annotate(n=Count("pk")).values("n"))
        return rows.annotate(lesson_count=Coalesce(count, Value(0), output_field=IntegerField()))

    @display(description="Experiences")
    def lessons(self, obj: Any) -> int:
        """Return how many experiences came of it."""
        return obj.lesson_count

    def pins(self, request: HttpRequest, session: Session, turns: Sequence[ConversationMessage]) -> list[Pin]:
        """Return the experiences, on the turns they came from."""
        seqs = [turn.seq for turn in turns]
        experiences = list(session.experiences.filter(turn_seq__in=seqs).order_by("id"))
        came_of = _came_of(session, [experience.pk for experience in experiences])
        return [
            Pin(
                seq=experience.turn_seq or 0,
                title=experience.title,
                kind="success" if KINDS[experience.experience_type] == "good" else "warning",
                label=experience.get_experience_type_display(),
                quote=experience.quote,
                url=reverse("admin:skills_skillexperience_change", args=[experience.pk]),
                came_of_it=tuple(came_of[experience.pk]),
            )
            for experience in experiences
        ]

    def get_urls(self) -> list[URLPattern]:
        """Add the start of a run."""
        view = self.admin_site.admin_view(self.learn_view)
        return [
            path("<path:object_id>/learn/", view, name="conversations_session_learn"),
            *super().get_urls(),
        ]

    def learn_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Start a run over the sealed sessions of a session's end user, and show it."""
        session = self.visible_object(request, object_id)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not operates(request, session.organization_id):
            raise PermissionDenied
        owner = Owner(organization=session.organization, end_user=session.end_user)
        run, is_new = start_run(owner=owner, actor=actor_of(request))
        self.message_user(request, "The run waits for a worker." if is_new else "This run goes on already.")
        return HttpResponseRedirect(reverse("admin:skills_autodreamrun_change", args=[run.pk]))

    def page_context(self, request: HttpRequest, obj: Session) -> dict[str, Any]:
        """Add what was learned, each lesson with the address of its turn, and the attempts.

        Of a session that could not be learned from, the last attempts are shown with what was answered.
        """
        experiences = obj.experiences.order_by("turn_seq", "id")
        attempts = obj.distillation_attempts.defer("raw_reply", "dropped").order_by("-created_at", "id")
        failures = with_reply(attempts, chars=MAX_REPLY_CHARS)[:MAX_FAILURES] if has_failed(obj) else []
        may_learn = obj.state == SessionState.SEALED and obj.tag == SessionTag.TASK
        return super().page_context(request, obj) | {
            "may_learn": may_learn and operates(request, obj.organization_id),
            "learned": [(experience, turn_url(obj.pk, experience.turn_seq)) for experience in experiences],
            "attempts": attempts[:MAX_ATTEMPTS_SHOWN],
            "failures": [(attempt, reply_of(attempt, chars=MAX_REPLY_CHARS)) for attempt in failures],
        }


def _came_of(session: Session, experiences: list[str]) -> dict[str, list[tuple[str, str]]]:
    """Return by experience the skills that rest on it, and the proposals that would; one query."""
    revisions = (
        SkillRevision.objects.with_owner_of(session)
        .filter(experiences__in=experiences, state__in=(RevisionState.PUBLISHED, RevisionState.PROPOSED))
        .order_by("-created_at", "pk")
        .values_list("experiences", "pk", "state", "skill_id", "skill__name", "name")[:MAX_CAME_OF]
    )
    found: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for experience, pk, state, skill, skill_name, name in revisions:
        if state == RevisionState.PUBLISHED and skill:
            url, shown = reverse("admin:skills_skill_change", args=[skill]), skill_name
        else:
            url, shown = reverse("admin:skills_skillrevision_change", args=[pk]), f"{name} (proposed)"
        found[experience].setdefault(url, (shown, url))
    return defaultdict(list, {pk: list(links.values()) for pk, links in found.items()})
