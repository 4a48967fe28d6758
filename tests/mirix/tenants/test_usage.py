"""What models use of an organization's tokens, day by day."""

from __future__ import annotations

from datetime import UTC, date, datetime
from threading import Barrier, Thread

import pytest
import time_machine
from django.db import connection

from mirix.tenants.audit import Actor
from mirix.tenants.models import TokenUsage
from mirix.tenants.preferences import change_settings
from mirix.tenants.usage import count_tokens, next_day, tokens_left, tokens_used, usage_of
from tests.factories import make_owner

pytestmark = pytest.mark.django_db
RITA = Actor(kind="user", id="7", name="rita")
EVENING = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)


def budget(owner, tokens: int) -> None:
    change_settings(organization=owner.organization, changes={"daily_token_budget": tokens}, actor=RITA)


def used(owner) -> int:
    return tokens_used(organization=owner.organization)


def left(owner) -> int | None:
    return tokens_left(organization=owner.organization)


def test_a_day_adds_up(owner, stranger):
    count_tokens(organization=owner.organization, prompt=100, completion=20, calls=1)
    count_tokens(organization=owner.organization, prompt=7, completion=3, calls=2)
    (day,) = usage_of(organization=owner.organization)
    assert (day.prompt_tokens, day.completion_tokens, day.calls, day.tokens) == (107, 23, 3, 130)
    assert (used(owner), used(stranger)) == (130, 0)


def test_nothing_leaves_no_row(owner):
    count_tokens(organization=owner.organization, prompt=0, completion=0, calls=0)
    assert not TokenUsage.objects.exists()


def test_without_a_budget_there_is_no_limit(owner):
    assert left(owner) is None


def test_the_budget_is_the_organizations_own_or_the_installations(owner, stranger, settings):
    settings.MIRIX_DAILY_TOKEN_BUDGET = 1_000
    budget(owner, 200)
    for each in (owner, stranger):
        count_tokens(organization=each.organization, prompt=100, completion=50)
    assert (left(owner), left(stranger)) == (50, 850)


def test_what_was_used_too_much_is_nothing_left(owner):
    budget(owner, 100)
    count_tokens(organization=owner.organization, prompt=90, completion=50)
    assert left(owner) == 0


def test_the_next_day_begins_with_all_of_it(owner):
    budget(owner, 100)
    with time_machine.travel(EVENING, tick=False):
        count_tokens(organization=owner.organization, prompt=100, completion=0)
        assert left(owner) == 0
        morning = next_day()
    assert morning == datetime(2026, 3, 2, tzinfo=UTC)
    with time_machine.travel(morning, tick=False):
        assert left(owner) == 100
        count_tokens(organization=owner.organization, prompt=1, completion=0)
    assert [day.day for day in usage_of(organization=owner.organization)] == [
        date(2026, 3, 2),
        date(2026, 3, 1),
    ]


@pytest.mark.django_db(transaction=True)
def test_of_many_who_count_at_once_none_is_lost():
    owner, ready = make_owner(), Barrier(8)

    def count() -> None:
        ready.wait()
        count_tokens(organization=owner.organization, prompt=1, completion=1)
        connection.close()

    threads = [Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (used(owner), TokenUsage.objects.get().calls) == (16, 8)
