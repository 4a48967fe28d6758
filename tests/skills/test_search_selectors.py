"""What the log of searches says: how skills are used, and how often answers were degraded."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine

from skills.selectors import searches
from skills.selectors.searches import degraded_by_day, searches_of, use_of
from tests.factories import make_content, make_owner, make_search, make_skill

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
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
