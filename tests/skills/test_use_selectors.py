"""What the newest searches say of the use of skills: which are returned most, and which never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from skills.models import Skill
from skills.selectors import use
from skills.selectors.use import most_returned, never_returned
from tests.factories import make_content, make_owner, make_search, make_skill

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=365)
DAY = timedelta(days=1)


def named(owner, name, **fields):
    return make_skill(owner, make_content(name=name), **fields)


def most(*owners, since=LONG_AGO, limit=10):
    organizations = [owner.organization.pk for owner in owners]
    found = most_returned(organizations=organizations, since=since, limit=limit)
    return [(each.skill, str(each.times)) for each in found]


def never(*owners, since=LONG_AGO):
    organizations = [owner.organization.pk for owner in owners]
    rows = Skill.objects.for_organizations(organizations)
    return set(never_returned(rows, organizations=organizations, since=since))


@pytest.fixture
def skills(owner):
    return [named(owner, name) for name in ("a-pay", "b-refund", "c-ship")]


class TestMost:
    def test_most_first_and_of_equals_by_name(self, owner, skills):
        make_search(owner, skills[1:])
        make_search(owner, [skills[2]])
        assert most(owner) == [(skills[2], "2"), (skills[1], "1")]
        make_search(owner, [skills[1]])
        assert most(owner) == [(skills[1], "2"), (skills[2], "2")]
        assert most(owner, limit=1) == [(skills[1], "2")]

    def test_of_the_time_that_is_asked_for(self, owner, skills):
        make_search(owner, [skills[0]], created_at=NOON - DAY)
        make_search(owner, [skills[1]], created_at=NOON)
        assert most(owner, since=NOON) == [(skills[1], "1")]

    def test_where_there_are_more_searches_than_are_read_it_says_so(self, owner, skills, monkeypatch):
        monkeypatch.setattr(use, "READ", 2)
        for skill in (skills[2], skills[1], skills[1]):
            make_search(owner, [skill])
        assert most(owner) == [(skills[1], "2+")]

    def test_one_that_is_gone_is_left_out(self, owner, skills):
        gone = named(owner, "d-gone")
        make_search(owner, [gone, skills[0]])
        Skill.objects.filter(pk=gone.pk).update(current_revision=None)
        gone.revisions.all().delete()
        gone.delete()
        assert most(owner) == [(skills[0], "1")]


class TestNever:
    def test_they_are_active_and_what_people_tried_is_no_use(self, owner, skills):
        named(owner, "archived", status="archived")
        make_search(owner, [skills[1]])
        make_search(owner, [skills[0]], source="admin")
        assert never(owner) == {skills[0], skills[2]}

    def test_of_the_time_that_is_asked_for(self, owner, skills):
        make_search(owner, [skills[0]], created_at=NOON - DAY)
        make_search(owner, [skills[1]], created_at=NOON)
        assert never(owner, since=NOON) == {skills[0], skills[2]}


def test_strangers_have_their_own(owner, stranger, skills):
    make_search(stranger, skills)
    theirs = named(stranger, "theirs")
    assert (most(owner), most(stranger)) == ([], [])
    assert never(stranger) == {theirs}
    assert never(owner) == set(skills)


@pytest.mark.parametrize("total", [1, 20])
def test_they_cost_three_queries_and_one(owner, skills, django_assert_num_queries, total):
    for number in range(total):
        make_search(make_owner(owner.organization), [named(owner, f"skill-{number}")])
    with django_assert_num_queries(3):
        found = most_returned(organizations=[owner.organization.pk], since=LONG_AGO, limit=10)
        assert {str(each.skill.end_user) for each in found} == {"alice"}
    with django_assert_num_queries(1):
        assert len(never(owner)) == 3
