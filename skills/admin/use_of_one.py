"""How one skill is used, for its page: a chart of days and the last searches, as far as the log goes back."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from mirix.days import Span, last_days
from mirix.tenants.selectors import effective
from skills.admin.charts import Series, chart
from skills.admin.lineage import list_of
from skills.models import SearchSource, Skill
from skills.selectors.days import Amount
from skills.selectors.searches import MOST, use_of
from skills.selectors.use import READ, returned_by_day

DAYS = 30
TITLE = "Searches that returned it"


def use_context(skill: Skill) -> dict[str, Any]:
    """Return the chart, the searches, and what of the past the log of searches does not tell any more."""
    span = last_days(DAYS)
    use = use_of(skill=skill)
    found = returned_by_day(skill=skill, span=span)
    kept = effective(skill.organization).search_log_retention_days
    first = max(span.first, span.last - timedelta(days=kept)) if kept else span.first
    link = partial(_searches, skill)
    series = Series(label="Searches over the API", tone="learn", days=found.days, link=link)
    return {
        "use": use,
        "times": Amount(number=use.times, is_least=use.times >= MOST),
        "use_url": link(None),
        "chart": chart(
            key="use", title="Searches that returned it", noun="searches", span=span, series=[series]
        ),
        "kept_days": kept,
        "kept_since": first if first > span.first else None,
        "read": READ,
        "read_since": found.since,
    }


def _searches(skill: Skill, span: Span | None) -> str:
    """Return the list of the searches over the API that returned a skill, on some days or on all."""
    days = {} if span is None else {"day": str(span)}
    return list_of("skills_searchevent", q=skill.pk, source__exact=SearchSource.API.value, **days)
