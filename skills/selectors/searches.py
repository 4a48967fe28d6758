"""Reads of the log of searches, and what it says of the use of skills: what was asked over the API counts.

Whatever is counted is counted to `MOST` and no further, by an index: a log of millions costs what a log of
thousands does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db import connection
from django.db.models import F
from django.utils import timezone

from mirix.tenants.models import Organization
from mirix.tenants.querysets import OwnedQuerySet
from mirix.tenants.scope import require
from skills.models import SearchEvent, SearchSource, Skill

MOST = 10_000
NEWEST = 10

DEGRADED = f"""
    SELECT day, (
        SELECT count(*) FROM (
            SELECT FROM {SearchEvent._meta.db_table}
            WHERE organization_id = %s AND source = %s AND degraded <> ''
            AND created_at >= day AND created_at < day_after LIMIT {MOST}
        ) AS event
    ) FROM unnest(%s::timestamptz[], %s::timestamptz[]) AS days (day, day_after) ORDER BY day
"""  # noqa: S608  (names of our own)


def searches_of(*, organization: Organization) -> OwnedQuerySet:
    """Return an organization's searches with who asked in whose skills, ready to be shown."""
    return SearchEvent.objects.for_organization(organization).select_related("end_user", "client", "user")


@dataclass(frozen=True, kw_only=True)
class SkillUse:
    """How a skill is used: how often it was returned (at most `MOST`), and by which searches lately."""

    times: int
    newest: list[SearchEvent]
    """At most `NEWEST`, the latest first."""

    @property
    def last_at(self) -> datetime | None:
        """When it was last returned."""
        return self.newest[0].created_at if self.newest else None


def use_of(*, skill: Skill) -> SkillUse:
    """Return how a skill is used; two queries."""
    events = SearchEvent.objects.with_organization_of(skill)
    returning = events.filter(source=SearchSource.API, skill_ids__contains=[skill.pk])
    times = returning.values("pk")[:MOST].count()
    # Of a few all are sorted: along the index of what was asked last the database would read the whole log.
    latest = F("created_at") if times == MOST else F("created_at") + timedelta(0)
    newest = returning.select_related("end_user", "client", "user").order_by(latest.desc(), "id")[:NEWEST]
    return SkillUse(times=times, newest=list(newest))


def degraded_by_day(*, organization: Organization, days: int = 14) -> list[tuple[date, int]]:
    """Return for each of the last days, today the last, how many answers had to do without something.

    At most `MOST` a day; days are those of the installation's time zone. One query.
    """
    require(organization.pk)
    today = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    starts = [today - timedelta(days=back) for back in range(days - 1, -2, -1)]
    with connection.cursor() as cursor:
        cursor.execute(DEGRADED, [organization.pk, SearchSource.API, starts[:-1], starts[1:]])
        return [(timezone.localtime(day).date(), count) for day, count in cursor.fetchall()]
