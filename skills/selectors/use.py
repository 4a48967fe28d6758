"""How skills are used over the API: which are returned most, and which never.

Read are the newest searches, `READ` in all: a log of millions costs what a log of thousands does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from mirix.tenants.scope import require
from skills.models import SearchEvent, SearchSource, Skill, SkillStatus
from skills.selectors.days import Amount

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
NEVER = f"""
    NOT EXISTS (SELECT FROM ({RETURNED}) AS returned WHERE returned.skill_id = {Skill._meta.db_table}.id)
"""


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
    never = RawSQL(NEVER, _asked(organizations, since), output_field=BooleanField())  # noqa: S611  (our own SQL)
    return skills.filter(never, status=SkillStatus.ACTIVE)


def _asked(organizations: Sequence[str], since: datetime) -> list:
    """Return the parameters of `RETURNED`: of several organizations each has its part of what is read."""
    return [list(organizations), SearchSource.API.value, since, max(1, READ // max(1, len(organizations)))]
