"""What models use for an organization a day, and what of the day's budget is left.

A day is one of the installation's time zone. The budget is `daily_token_budget` of the organization's
settings; who is about to ask a model looks first what is left, and counts what it took as soon as the answer
is there.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from mirix.tenants.models import Organization, TokenUsage
from mirix.tenants.selectors import effective


@transaction.atomic
def count_tokens(*, organization: Organization, prompt: int, completion: int, calls: int = 1) -> None:
    """Add to what was used today. Not in a long transaction: others who count wait for its end."""
    if not (prompt or completion or calls):
        return
    day = _day(organization)
    TokenUsage.objects.for_organization(organization).filter(pk=day.pk).update(
        prompt_tokens=F("prompt_tokens") + prompt,
        completion_tokens=F("completion_tokens") + completion,
        calls=F("calls") + calls,
    )


def hold_day(*, organization: Organization) -> TokenUsage:
    """Lock today's row until the transaction ends and return it; whoever counts waits. Inside `atomic`."""
    day = _day(organization)
    rows = TokenUsage.objects.for_organization(organization).select_for_update(no_key=True)
    return rows.get(pk=day.pk)


def _day(organization: Organization) -> TokenUsage:
    rows = TokenUsage.objects.for_organization(organization)
    return rows.get_or_create(organization=organization, day=today())[0]


def tokens_used(*, organization: Organization) -> int:
    """Return how many tokens were used today."""
    day = usage_of(organization=organization).filter(day=today()).first()
    return day.tokens if day else 0


def tokens_left(*, organization: Organization) -> int | None:
    """Return how many tokens may still be used today, 0 at least; None where there is no limit."""
    budget = effective(organization).daily_token_budget
    return max(0, budget - tokens_used(organization=organization)) if budget else None


def usage_of(*, organization: Organization) -> QuerySet[TokenUsage]:
    """Return the days on which models were asked, the latest first."""
    return TokenUsage.objects.for_organization(organization).order_by("-day")


def today() -> date:
    """Return the day whose budget is being used."""
    return timezone.localdate()


def next_day() -> datetime:
    """Return when the next day's budget begins."""
    return timezone.make_aware(datetime.combine(today() + timedelta(days=1), time.min))
