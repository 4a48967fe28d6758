"""What the log of searches says: how skills are used, and how often answers were degraded."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine

from skills.selectors import searches
from skills.selectors.searches import degraded_by_day, most_retrieved, never_retrieved, searches_of, use_of
from tests.factories import make_content, make_owner, make_search, make_skill

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=365)
DAY = timedelta(days=1)


def named(owner, name, **fields):
    return make_skill(owner, make_content(name=name), **fields)


@pytest.fixture
def skills(owner):
    return [named(owner, name) for name in ("a-pay", "b-refund", "c-ship")]


class TestUse:
    def test_how_often_when_last_and_by_which_searches(self, owner, skills):
        old = make_search(owner, skills[:2], created_at=NOON - DAY)
        new = make_search(owner, [skills[0]], created_at=NOON, end_user=None)
        use = use_of(skill=skills[0])
        assert (use.times, use.newest, use.last_at) == (2, [new, old], NOON)
        assert use_of(skill=skills[1]).newest == [old]

    def test_one_that_was_never_returned(self, owner, skills):
        make_search(owner, skills[:1])
        use = use_of(skill=skills[2])
        assert (use.times, use.newest, use.last_at) == (0, [], None)

    def test_what_people_tried_in_the_admin_is_no_use(self, owner, skills):
        make_search(owner, skills, source="admin")
        assert use_of(skill=skills[0]).times == 0

    def test_an_event_of_a_stranger_that_names_the_skill_does_not_count(self, owner, stranger, skills):
        make_search(stranger, skills)
        assert use_of(skill=skills[0]).times == 0

    def test_counting_stops_and_the_list_does(self, owner, skills, monkeypatch):
        monkeypatch.setattr(searches, "MOST", 3)
        monkeypatch.setattr(searches, "NEWEST", 2)
        for _ in range(5):
            make_search(owner, skills)
        use = use_of(skill=skills[0])
        assert (use.times, len(use.newest)) == (3, 2)

    @pytest.mark.parametrize("total", [1, 20])
    def test_it_costs_two_queries(self, owner, skills, django_assert_num_queries, total):
        for _ in range(total):
            make_search(owner, skills)
        with django_assert_num_queries(2):
            use = use_of(skill=skills[0])
            assert use.newest[0].end_user.user_id == "alice"
            assert use.newest[0].client.name


class TestMostAndNever:
    def test_most_first_and_of_equals_by_name(self, owner, skills):
        make_search(owner, skills[1:])
        make_search(owner, [skills[2]])
        assert most_retrieved(organization=owner.organization, since=LONG_AGO) == [
            (skills[2], 2),
            (skills[1], 1),
        ]
        make_search(owner, [skills[1]])
        assert [skill for skill, _ in most_retrieved(organization=owner.organization, since=LONG_AGO)] == [
            skills[1],
            skills[2],
        ]

    def test_of_the_time_that_is_asked_for(self, owner, skills):
        make_search(owner, [skills[0]], created_at=NOON - DAY)
        make_search(owner, [skills[1]], created_at=NOON)
        assert most_retrieved(organization=owner.organization, since=NOON) == [(skills[1], 1)]
        assert set(never_retrieved(organization=owner.organization, since=NOON)) == {skills[0], skills[2]}

    def test_never_are_the_active_ones_newest_first(self, owner, skills):
        named(owner, "archived", status="archived")
        make_search(owner, [skills[1]])
        make_search(owner, [skills[0]], source="admin")
        assert list(never_retrieved(organization=owner.organization, since=LONG_AGO)) == [
            skills[2],
            skills[0],
        ]

    def test_strangers_have_their_own(self, owner, stranger, skills):
        make_search(stranger, skills)
        theirs = named(stranger, "theirs")
        assert most_retrieved(organization=owner.organization, since=LONG_AGO) == []
        assert most_retrieved(organization=stranger.organization, since=LONG_AGO) == []
        assert list(never_retrieved(organization=stranger.organization, since=LONG_AGO)) == [theirs]

    @pytest.mark.parametrize("total", [1, 20])
    def test_they_cost_two_queries_each(self, owner, skills, django_assert_num_queries, total):
        for number in range(total):
            make_search(owner, [named(owner, f"skill-{number}")])
        with django_assert_num_queries(2):
            found = most_retrieved(organization=owner.organization, since=LONG_AGO)
            assert {str(skill.end_user) for skill, _ in found} == {"alice"}
        with django_assert_num_queries(2):
            assert len(never_retrieved(organization=owner.organization, since=LONG_AGO)) == 3


class TestDegraded:
    @time_machine.travel(NOON, tick=False)
    def test_by_day_with_today_the_last(self, owner, stranger):
        for days, degraded, asker in [
            (0, "no endpoint", owner),
            (0, "", owner),
            (1, "timeout", owner),
            (1, "timeout", make_owner(owner.organization)),
            (1, "timeout", stranger),
            (3, "too old", owner),
        ]:
            make_search(asker, degraded=degraded, created_at=NOON - days * DAY)
        make_search(owner, degraded="timeout", source="admin")
        assert degraded_by_day(organization=owner.organization, days=3) == [
            (date(2026, 3, 8), 0),
            (date(2026, 3, 9), 2),
            (date(2026, 3, 10), 1),
        ]

    @pytest.mark.parametrize("total", [0, 20])
    def test_it_costs_one_query(self, owner, django_assert_num_queries, total):
        for _ in range(total):
            make_search(owner, degraded="timeout")
        with django_assert_num_queries(1):
            assert degraded_by_day(organization=owner.organization)[-1][1] == total


def test_the_searches_of_an_organization(owner, stranger):
    mine = make_search(owner)
    make_search(stranger)
    assert list(searches_of(organization=owner.organization)) == [mine]
