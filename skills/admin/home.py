"""The home page: what waits, what is stuck, what there is, and what the last days brought."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from mirix.admin_base import organization_ids
from mirix.days import Span, last_days
from skills.admin import figures, first_steps
from skills.admin.charts import Chart, Series, chart
from skills.admin.scope import Scope, scope_of
from skills.models import AutoDreamRun, ExperienceType, RevisionState, RunState, SearchSource, SkillRevision
from skills.selectors.days import Days, by_day
from skills.selectors.proposals import QUEUE_ORDER
from skills.selectors.use import most_returned

DAYS = 30
QUEUE_ON_HOME = 6
RUNNING_ON_HOME = 10
SKILLS_ON_HOME = 5


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Add what the home page shows, of the organizations that it is about.

    For whoever is a member nowhere there is nothing: the lists behind the figures would refuse them.
    """
    if organization_ids(request) == []:
        return context | {"is_nowhere": True}
    scope, span = scope_of(request), last_days(DAYS)
    sessions = figures.sessions(scope)
    charts = _charts(scope, by_day(organizations=scope.ids, span=span), span) if scope.ids else []
    nothing_yet = not any(state.amount for state in sessions)
    return context | {
        "scope": scope,
        "span": span,
        "zone": timezone.get_current_timezone_name(),
        "waiting": figures.waiting_proposals(scope),
        "stuck": figures.stuck(scope, span),
        "sessions": sessions,
        "skills": figures.skills(scope, span),
        "charts": charts,
        "queue": list(_queue(scope)),
        "running": list(
            scope.rows(AutoDreamRun)
            .filter(state=RunState.RUNNING)
            .select_related("end_user")[:RUNNING_ON_HOME]
        ),
        "most": _most(scope, span),
        "nothing_yet": nothing_yet,
        **_next_step(request, scope, charts, nothing_yet),
    }


def _queue(scope: Scope) -> QuerySet:
    waiting = scope.rows(SkillRevision).filter(state=RevisionState.PROPOSED).order_by(*QUEUE_ORDER)
    return waiting.select_related("organization", "end_user")[:QUEUE_ON_HOME]


def _charts(scope: Scope, days: dict[str, Days], span: Span) -> list[Chart]:
    """Return the charts; what a bar counts is what the list behind it shows."""

    def link(model: str, **filters: str) -> Callable[[Span], str]:
        return lambda of: scope.link(model, **filters, day=of)

    def learned(kind: ExperienceType) -> Callable[[Span], str]:
        return link("skills_skillexperience", experience_type__exact=kind.value)

    complete = {day: total.without(days["degraded"][day]) for day, total in days["searches"].items()}
    return [
        chart(
            key="experiences",
            title="Experiences learned",
            noun="experiences",
            span=span,
            series=[
                Series(
                    label="Worth learning",
                    tone="learn",
                    days=days["learn"],
                    link=learned(ExperienceType.WORTH_LEARNING),
                ),
                Series(
                    label="Worth avoiding",
                    tone="avoid",
                    days=days["avoid"],
                    link=learned(ExperienceType.WORTH_AVOIDING),
                ),
            ],
        ),
        chart(
            key="tokens",
            title="Tokens used",
            noun="tokens",
            span=span,
            series=[
                Series(
                    label="Distillation",
                    tone="learn",
                    days=days["distillation"],
                    link=link("skills_distillationattempt"),
                ),
                Series(
                    label="Proposer", tone="second", days=days["proposer"], link=link("skills_proposercall")
                ),
            ],
        ),
        chart(
            key="searches",
            title="Searches answered",
            noun="searches",
            span=span,
            series=[
                Series(
                    label="Complete",
                    tone="learn",
                    days=complete,
                    link=link("skills_searchevent", degraded="no"),
                ),
                Series(
                    label="Degraded",
                    tone="avoid",
                    days=days["degraded"],
                    link=link("skills_searchevent", degraded="yes"),
                ),
            ],
        ),
    ]


def _most(scope: Scope, span: Span) -> list[dict[str, Any]]:
    """Return the skills that agents get most, each with the share of the first one that it has."""
    if scope.ids is None:
        return []
    found = most_returned(organizations=scope.ids, since=span.moments[0], limit=SKILLS_ON_HOME)
    return [
        {
            "skill": each.skill,
            "times": each.times,
            "most": found[0].times.number,
            "url": scope.link(
                "skills_searchevent", q=each.skill.pk, source__exact=SearchSource.API.value, day=span
            ),
        }
        for each in found
    ]


def _next_step(request: HttpRequest, scope: Scope, charts: list[Chart], nothing_yet: bool) -> dict[str, Any]:
    """Return the commands for what is not there yet, and where their key comes from."""
    empty = {each.key for each in charts if not each.rows}
    steps: dict[str, str] = {}
    if nothing_yet:
        steps["send"] = first_steps.send_a_session(request)
    else:
        if "experiences" in empty:
            steps["dream"] = first_steps.dream(request, scope)
        if "searches" in empty:
            steps["ask"] = first_steps.ask(request, scope)
    return {"steps": steps, "key": first_steps.help_with_key(request, scope) if steps else None}
