"""How skills are used over the API: which are returned most, which never, and how often one is a day.

Read are the newest searches, `READ` in all: a log of millions costs what a log of thousands does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db import connection
from django.db.models import BooleanField, Func, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from mirix.days import Span
from mirix.tenants.scope import require
from skills.models import SearchEvent, SearchSource, Skill, SkillStatus
from skills.selectors.days import Amount, Days

READ = 2_000
"""Of all organizations together: enough to tell what is used, and read while somebody waits for a page."""
RETURNED = f"""
    SELECT unnest(event.skill_ids) AS skill_id FROM unnest(%s::text[]) AS organization (pk)
    CROSS JOIN LATERAL (
        SELECT skill_ids FROM {SearchEvent._meta.db_table}
        WHERE organization_id = organization.pk AND source = %s AND created_at >= %s
        ORDER BY created_at DESC LIMIT %s
    ) AS event
"""  # noqa: S608  (names of our own)
MOST_RETURNED = f"""
    SELECT skill_id, count(*) FROM ({RETURNED}) AS returned
    GROUP BY skill_id ORDER BY count(*) DESC, skill_id LIMIT %s
"""  # noqa: S608  (names of our own)


class _IsNotAmong(Func):
    """Whether a key is not among those that SQL returns, which is read once and hashed."""

    arg_joiner = " NOT IN "
    template = "%(expressions)s"
    output_field = BooleanField()


@dataclass(frozen=True, kw_only=True)
class Returns:
    """A skill, and how many of the newest searches returned it."""

    skill: Skill
    times: Amount


def most_returned(*, organizations: Sequence[str], since: datetime, limit: int) -> list[Returns]:
    """Return the skills that these organizations' newest searches since then returned most. Three queries."""
    for pk in organizations:
        require(pk)
    asked = _asked(organizations, since)
    with connection.cursor() as cursor:
        # More than are wanted, since some may be gone.
        cursor.execute(MOST_RETURNED, [*asked, 2 * limit])
        counts: dict[str, int] = dict(cursor.fetchall())
    searches = SearchEvent.objects.for_organizations(organizations).filter(
        source=SearchSource.API, created_at__gte=since
    )
    # Where there are more searches than were read, a skill may have been returned more often.
    is_least = searches.order_by().values("pk")[: asked[-1] + 1].count() > asked[-1]
    skills = Skill.objects.for_organizations(organizations).select_related("end_user").filter(pk__in=counts)
    found = [
        Returns(skill=skill, times=Amount(number=counts[skill.pk], is_least=is_least)) for skill in skills
    ]
    return sorted(found, key=lambda each: (-each.times.number, each.skill.name, each.skill.pk))[:limit]


def never_returned(skills: QuerySet, *, organizations: Sequence[str], since: datetime) -> QuerySet:
    """Return those of `skills` that are active and that none of the newest searches since then returned."""
    for pk in organizations:
        require(pk)
    returned = RawSQL(RETURNED, _asked(organizations, since))  # noqa: S611  (our own SQL)
    return skills.filter(_IsNotAmong("pk", returned), status=SkillStatus.ACTIVE)


@dataclass(frozen=True, kw_only=True)
class DaysOfUse:
    """How many searches returned a skill each day."""

    days: Days
    since: date | None
    """The day before which there are searches that were not read; None where all of them were."""


def returned_by_day(*, skill: Skill, span: Span) -> DaysOfUse:
    """Return how many of the newest `READ` searches of `span` that returned a skill there were a day.

    One query.
    """
    start, end = span.moments
    searches = SearchEvent.objects.with_organization_of(skill).filter(
        source=SearchSource.API, skill_ids__contains=[skill.pk], created_at__gte=start, created_at__lt=end
    )
    newest = searches.order_by("-created_at", "id").values_list("created_at", flat=True)[: READ + 1]
    found = [timezone.localtime(moment).date() for moment in newest]
    counts = Counter(found[:READ])
    cut = found[READ - 1] if len(found) > READ else None
    return DaysOfUse(
        days={day: Amount(number=counts[day], is_least=day == cut) for day in span},
        since=cut,
    )


def _asked(organizations: Sequence[str], since: datetime) -> list:
    """Return the parameters of `RETURNED`: of several organizations each has its part of what is read."""
    return [list(organizations), SearchSource.API.value, since, max(1, READ // max(1, len(organizations)))]
