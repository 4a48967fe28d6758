"""Reads of the log of searches, and what it says of the use of skills: what was asked over the API counts.

Whatever is counted is counted to `MOST` and no further, by an index: a log of millions costs what a log of
thousands does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import connection
from django.db.models import BooleanField, F, Func, TextField, Value
from django.utils import timezone

from mirix.tenants.models import Organization
from mirix.tenants.querysets import OwnedQuerySet
from mirix.tenants.scope import require
from skills.models import SearchEvent, SearchSource, Skill, SkillStatus

MOST = 10_000


class NotAmong(Func):
    """Whether the first is none of the values in the second, an array."""

    arg_joiner = " <> ALL ("
    template = "(%(expressions)s))"
    output_field = BooleanField()


NEWEST = 10

RETURNED = f"""
    SELECT skill_id, count(*) FROM (
        SELECT skill_ids FROM {SearchEvent._meta.db_table}
        WHERE organization_id = %s AND source = %s AND created_at >= %s
        ORDER BY created_at DESC LIMIT {MOST}
    ) AS newest, unnest(skill_ids) AS skill_id GROUP BY skill_id
"""  # noqa: S608  (names of our own)
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
    newest = returning.select_related("end_user", "client", "user").order_by("-created_at", "id")[:NEWEST]
    return SkillUse(times=returning.values("pk")[:MOST].count(), newest=list(newest))


def most_retrieved(
    *, organization: Organization, since: datetime, limit: int = NEWEST
) -> list[tuple[Skill, int]]:
    """Return the skills that the organization's newest searches since then returned most, and how often.

    The most often returned first, of equal ones by name. Two queries.
    """
    counts = _returned(organization, since)
    # More than are wanted, since some may be gone.
    first = sorted(counts, key=lambda pk: (-counts[pk], pk))[: 2 * limit]
    skills = Skill.objects.for_organization(organization).select_related("end_user").filter(pk__in=first)
    best = sorted(((skill, counts[skill.pk]) for skill in skills), key=lambda pair: (-pair[1], pair[0].name))
    return best[:limit]


def never_retrieved(*, organization: Organization, since: datetime) -> OwnedQuerySet:
    """Return the active skills that none of the organization's newest searches since then returned."""
    active = Skill.objects.for_organization(organization).filter(status=SkillStatus.ACTIVE)
    # As one array, which the database hashes: thousands of parameters cost more than the search for them.
    returned = Value(list(_returned(organization, since)), output_field=ArrayField(TextField()))
    never = active.filter(NotAmong(F("pk"), returned))
    return never.select_related("end_user").order_by("-created_at", "id")


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


def _returned(organization: Organization, since: datetime) -> dict[str, int]:
    """Return how often the newest searches of an organization returned each skill; one query."""
    require(organization.pk)
    with connection.cursor() as cursor:
        cursor.execute(RETURNED, [organization.pk, SearchSource.API, since])
        return dict(cursor.fetchall())
