"""The figures of the home page: how much waits, what is stuck, what there is. Each leads to what it counts.

Nobody waits for a count of millions: `MAX_FIGURE` are counted, and more is told as more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from conversations.models import IntakeRecord, IntakeState, Session, SessionState
from mirix.days import Span
from mirix.tenants.scope import require
from skills.admin.scope import Scope
from skills.models import (
    AutoDreamRun,
    RevisionState,
    RunState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.risks import RISK_LABELS
from skills.selectors.days import Amount
from skills.selectors.use import never_returned

MAX_FIGURE = 10_000
STATE_TONES = {
    SessionState.OPEN: "info",
    SessionState.SEALED: "warning",
    SessionState.DISTILLED: "good",
    SessionState.DEAD: "bad",
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number with the address of the list of what it counts."""

    key: str
    label: str
    amount: Amount
    url: str
    tone: str = ""
    """Its colour; only of what there is any."""


def count(rows: QuerySet) -> Amount:
    """Return how many there are, at most `MAX_FIGURE`."""
    return _amount(rows.order_by().values("pk")[: MAX_FIGURE + 1].count())


def _amount(found: int) -> Amount:
    return Amount(number=min(found, MAX_FIGURE), is_least=found > MAX_FIGURE)


def _figure(key: str, label: str, rows: QuerySet, url: str, tone: str = "") -> Figure:
    amount = count(rows)
    return Figure(key=key, label=label, amount=amount, url=url, tone=tone if amount else "")


# ---- Proposals -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The proposals that wait: all, those with something to watch and those with nothing, and each danger."""

    total: Figure
    some: Figure
    none: Figure
    risks: list[Figure]
    """Of each danger that any of them has, the commonest first; a proposal may have several."""

    @property
    def pair(self) -> tuple[Figure, Figure]:
        """Return the two halves of all."""
        return self.some, self.none


RISKS = f"""
    WITH waiting AS MATERIALIZED (
        SELECT risk_flags FROM {SkillRevision._meta.db_table}
        WHERE state = '{RevisionState.PROPOSED.value}' AND (%s OR organization_id = ANY(%s))
        LIMIT {MAX_FIGURE + 1}
    )
    SELECT NULL, count(*) FROM waiting UNION ALL
    SELECT '', count(*) FROM waiting WHERE risk_flags <> '[]'::jsonb UNION ALL
    SELECT flag, count(*) FROM waiting, jsonb_array_elements_text(
        CASE jsonb_typeof(risk_flags) WHEN 'array' THEN risk_flags ELSE '[]' END
    ) AS flag GROUP BY flag
"""  # noqa: S608  (names of our own)


def waiting_proposals(scope: Scope) -> Waiting:
    """Return how many proposals wait, by what is to be watched in them; one query."""
    for pk in scope.ids or []:
        require(pk)
    with connection.cursor() as cursor:
        cursor.execute(RISKS, [scope.ids is None, scope.ids or []])
        found: dict[str | None, int] = dict(cursor.fetchall())
    everything, flagged = found.pop(None), found.pop("")
    total = _amount(everything)

    def figure(key: str, label: str, number: int, tone: str = "", **filters: str) -> Figure:
        amount = Amount(number=min(number, total.number), is_least=total.is_least and number > 0)
        url = scope.link("skills_skillrevision", **filters)
        return Figure(key=key, label=label, amount=amount, url=url, tone=tone if number else "")

    known = [(flag, number) for flag, number in found.items() if flag in RISK_LABELS]
    return Waiting(
        total=figure("waiting", "waiting for a decision", everything, "call"),
        some=figure("some", "With something to watch", flagged, "warning", risk="some"),
        none=figure("none", "Nothing to watch", everything - flagged, "good", risk="none"),
        risks=[
            figure(f"risk-{flag}", RISK_LABELS[flag], number, risk=flag)
            for flag, number in sorted(known, key=lambda pair: (-pair[1], pair[0]))
        ],
    )


# ---- What is stuck, and what there is --------------------------------------------------------------------


def stuck(scope: Scope, span: Span) -> list[Figure]:
    """Return what does not go on by itself; of runs, those of the days of `span`."""
    start, end = span.moments
    requests = scope.rows(IntakeRecord)
    failed_runs = scope.rows(AutoDreamRun).filter(
        state=RunState.FAILED, created_at__gte=start, created_at__lt=end
    )

    def link(model: str, state: Any, **more: Any) -> str:
        return scope.link(model, state__exact=state.value, **more)

    return [
        _figure(
            "dead",
            "Sessions given up",
            scope.rows(Session).filter(state=SessionState.DEAD),
            link("conversations_session", SessionState.DEAD),
            "bad",
        ),
        _figure(
            "intake-failed",
            "Requests that failed",
            requests.filter(state=IntakeState.FAILED),
            link("conversations_intakerecord", IntakeState.FAILED),
            "bad",
        ),
        _figure(
            "intake-partial",
            "Requests stored in part",
            requests.filter(state=IntakeState.PARTIAL),
            link("conversations_intakerecord", IntakeState.PARTIAL),
            "warning",
        ),
        _figure(
            "quarantined",
            "Experiences in quarantine",
            scope.rows(SkillExperience).filter(quarantined=True),
            scope.link("skills_skillexperience", quarantined__exact=1),
            "warning",
        ),
        _figure(
            "runs-failed",
            "Runs that failed lately",
            failed_runs,
            link("skills_autodreamrun", RunState.FAILED, day=span),
            "bad",
        ),
    ]


def sessions(scope: Scope) -> list[Figure]:
    """Return how many sessions are in each state."""
    return [
        _figure(
            f"sessions-{state.value}",
            str(state.label),
            scope.rows(Session).filter(state=state),
            scope.link("conversations_session", state__exact=state.value),
            STATE_TONES[state],
        )
        for state in SessionState
    ]


def skills(scope: Scope, span: Span) -> list[Figure]:
    """Return how many skills agents find, and how many of them no search found on the days of `span`."""
    active = scope.rows(Skill).filter(status=SkillStatus.ACTIVE)
    found = [_figure("active", "Active", active, scope.link("skills_skill", status__exact="active"))]
    if scope.ids is not None:
        never = never_returned(scope.rows(Skill), organizations=scope.ids, since=span.moments[0])
        found.append(
            _figure("never", "Never retrieved", never, scope.link("skills_skill", use="never"), "warning")
        )
    return found
