"""What was learned, in numbers, for `/metrics`; and how long searches take in this process."""

from __future__ import annotations

from django.db.models import Count, Min, QuerySet, Sum
from django.utils import timezone

from mirix.measures import Measure, Readings
from mirix.tenants.models import TokenUsage
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    ProposerCall,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
)

INSTALLATION = "numbers of the installation"


def _counted(rows: QuerySet, field: str, **labels: str) -> Readings:
    """Return how many rows there are of each value of a field."""
    found = rows.order_by().values_list(field).annotate(Count("pk")).order_by(field)
    return [({**labels, field: value}, number) for value, number in found]


def _verdicts() -> Readings:
    return [
        *_counted(DistillationAttempt.objects.unscoped(INSTALLATION), "verdict", asked="distiller"),
        *_counted(ProposerCall.objects.unscoped(INSTALLATION), "verdict", asked="proposer"),
    ]


def _waiting() -> QuerySet:
    return SkillRevision.objects.unscoped(INSTALLATION).filter(state=RevisionState.PROPOSED)


def _oldest_proposal() -> Readings:
    oldest = _waiting().aggregate(oldest=Min("created_at"))["oldest"]
    return [({}, (timezone.now() - oldest).total_seconds() if oldest else 0.0)]


def _quarantined() -> Readings:
    return [({}, SkillExperience.objects.unscoped(INSTALLATION).filter(quarantined=True).count())]


def _tokens() -> Readings:
    used = TokenUsage.objects.unscoped(INSTALLATION).aggregate(
        prompt=Sum("prompt_tokens", default=0), completion=Sum("completion_tokens", default=0)
    )
    return [({"kind": kind}, number) for kind, number in used.items()]


def _calls() -> Readings:
    used = TokenUsage.objects.unscoped(INSTALLATION).aggregate(calls=Sum("calls", default=0))
    return [({}, used["calls"])]


MEASURES = (
    Measure(
        name="mirix_verdicts",
        text="How questions to distillers and to proposers' models ended; those whose rows are kept.",
        read=_verdicts,
    ),
    Measure(
        name="mirix_runs",
        text="Runs by state.",
        read=lambda: _counted(AutoDreamRun.objects.unscoped(INSTALLATION), "state"),
    ),
    Measure(
        name="mirix_skills",
        text="Skills by status.",
        read=lambda: _counted(Skill.objects.unscoped(INSTALLATION), "status"),
    ),
    Measure(
        name="mirix_proposals_waiting",
        text="Proposals that wait for a decision.",
        read=lambda: [({}, _waiting().count())],
    ),
    Measure(
        name="mirix_proposals_oldest_seconds",
        text="For how long the oldest proposal waits for a decision.",
        read=_oldest_proposal,
    ),
    Measure(
        name="mirix_experiences_quarantined",
        text="Experiences that evolution leaves alone until somebody releases them.",
        read=_quarantined,
    ),
    Measure(
        name="mirix_model_tokens_total",
        text="Tokens that models took (prompt) and gave (completion), for all organizations that there are.",
        read=_tokens,
        kind="counter",
    ),
    Measure(
        name="mirix_model_calls_total",
        text="Requests to models, for all organizations that there are.",
        read=_calls,
        kind="counter",
    ),
)
