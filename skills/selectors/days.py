"""What happened a day: experiences learned, tokens used, searches answered. One query, of ranges of indexes.

Of an organization's day at most `MOST` rows are read of a kind, so that a page costs the same however much
there is; a number that stopped there says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.db import connection
from django.db.models import Model

from mirix.days import Span, start_of
from mirix.tenants.scope import require
from skills.models import DistillationAttempt, ExperienceType, ProposerCall, SearchEvent, SkillExperience

MOST = 10_000


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A number, or the least that it is."""

    number: int = 0
    is_least: bool = False
    """Whether there is more that was not counted."""

    def __str__(self) -> str:
        return f"{self.number:,}{'+' if self.is_least else ''}"

    def __bool__(self) -> bool:
        return self.number > 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(number=self.number + other.number, is_least=self.is_least or other.is_least)

    def without(self, part: Amount) -> Amount:
        """Return the rest of this when a part of it is taken away."""
        return Amount(number=max(0, self.number - part.number), is_least=self.is_least)


Days = dict[date, Amount]


@dataclass(frozen=True, kw_only=True)
class Source:
    """What is counted: rows of a model, or the sum of an expression over them."""

    model: type[Model]
    condition: str = "true"
    summed: str = ""


def _of_type(kind: ExperienceType) -> Source:
    return Source(model=SkillExperience, condition=f"experience_type = '{kind.value}'")


TOKENS = "prompt_tokens + completion_tokens"
SOURCES: dict[str, Source] = {
    "learn": _of_type(ExperienceType.WORTH_LEARNING),
    "avoid": _of_type(ExperienceType.WORTH_AVOIDING),
    "distillation": Source(model=DistillationAttempt, summed=TOKENS),
    "proposer": Source(model=ProposerCall, summed=TOKENS),
    "searches": Source(model=SearchEvent),
    "degraded": Source(model=SearchEvent, condition="degraded <> ''"),
}
"""What is told of each day, by its name."""


def _select(name: str, source: Source) -> str:
    counted = "coalesce(sum(amount), 0)" if source.summed else f"least(count(*), {MOST})"
    return f"""
        SELECT '{name}', span.day, sum(found.number), bool_or(found.is_least)
        FROM span CROSS JOIN organization CROSS JOIN LATERAL (
            SELECT {counted} AS number, count(*) > {MOST} AS is_least FROM (
                SELECT {source.summed or "1"} AS amount FROM {source.model._meta.db_table}
                WHERE organization_id = organization.pk AND {source.condition}
                AND created_at >= span.starts AND created_at < span.ends LIMIT {MOST + 1}
            ) AS row
        ) AS found GROUP BY span.day
    """  # noqa: S608  (names of our own)


BY_DAY = f"""
    WITH span AS (
        SELECT * FROM unnest(%s::date[], %s::timestamptz[], %s::timestamptz[]) AS span (day, starts, ends)
    ), organization AS (SELECT * FROM unnest(%s::text[]) AS organization (pk))
    {" UNION ALL ".join(_select(name, source) for name, source in SOURCES.items())}
"""  # noqa: S608  (names of our own)


def by_day(*, organizations: Sequence[str], span: Span) -> dict[str, Days]:
    """Return by the names of `SOURCES` what each day of `span` had in these organizations together."""
    for pk in organizations:
        require(pk)
    days = list(span)
    starts = [start_of(day) for day in days]
    ends = [*starts[1:], span.moments[1]]
    found: dict[str, Days] = {name: dict.fromkeys(days, Amount()) for name in SOURCES}
    with connection.cursor() as cursor:
        cursor.execute(BY_DAY, [days, starts, ends, list(organizations)])
        for name, day, number, is_least in cursor.fetchall():
            found[name][day] = Amount(number=int(number), is_least=is_least)
    return found
