"""What was served to whom: by the log of searches, in a range of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from skills.search.fingerprints import MASK
from skills.search.served import served_fingerprints
from tests.factories import make_content, make_owner, make_search, make_skill

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
INSTRUCTIONS = "Ask which of the stored cards to use, then charge it and send a receipt."
DESCRIPTION = "Use when an order of a customer must be paid with a stored card."


@pytest.fixture
def skill(owner):
    return make_skill(owner, make_content(description=DESCRIPTION, instructions=INSTRUCTIONS))


def masked(owner, text=INSTRUCTIONS, before=NOON + HOUR, since=NOON) -> bool:
    return MASK in served_fingerprints(owner=owner, before=before, since=since).mask(text)


def test_what_was_returned_is_recognised_in_its_time(owner, skill):
    make_search(owner, [skill], created_at=NOON)
    assert masked(owner)
    assert masked(owner, DESCRIPTION)
    assert not masked(owner, before=NOON)
    assert not masked(owner, since=NOON + timedelta(seconds=1))


def test_as_it_was_then_and_not_as_it_is_now(owner, skill):
    make_search(owner, [skill], created_at=NOON)
    skill.current_revision = make_skill(owner).current_revision
    skill.instructions = "Something else altogether, which was never served to any agent of anybody."
    skill.save()
    assert masked(owner)
    assert not masked(owner, skill.instructions)


def test_examples_and_triggers_were_served_too(owner):
    example = "Pay order 7 with the blue card, since the customer asked for it."
    content = make_content(examples=[{"input": {"said": [example]}}])
    make_search(owner, [make_skill(owner, content)], created_at=NOON)
    assert masked(owner, example)


def test_a_catalog_served_no_instructions(owner, skill):
    make_search(owner, [skill], created_at=NOON, view="catalog")
    assert not masked(owner)
    assert masked(owner, DESCRIPTION)


def test_a_search_across_all_users_may_have_served_anybody(owner, skill):
    make_search(owner, [skill], created_at=NOON, end_user=None)
    assert masked(owner)
    assert masked(make_owner(owner.organization))


def test_nobody_else_was_served(owner, stranger, skill):
    make_search(owner, [skill], created_at=NOON)
    assert not masked(stranger)
    assert not masked(make_owner(owner.organization))


def test_what_people_looked_up_in_the_admin_was_served_to_no_agent(owner, skill):
    make_search(owner, [skill], created_at=NOON, source="admin")
    assert not masked(owner)


@pytest.mark.parametrize("searches", [1, 20])
def test_it_costs_the_same_for_many(owner, skill, django_assert_num_queries, searches):
    for _ in range(searches):
        make_search(owner, [skill, make_skill(owner)], created_at=NOON)
    with django_assert_num_queries(5):
        served_fingerprints(owner=owner, before=NOON + HOUR, since=NOON)
