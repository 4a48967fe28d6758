"""The list of proposals: what it is filtered and sorted by."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client as Browser
from django.utils import timezone

from mirix.admin_base import CappedPaginator
from skills.admin.queue_filters import MAX_RUNS
from skills.models import SkillRevision
from skills.review.risks import RISK_LABELS
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_run,
    make_skill,
    make_superuser,
)
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db
QUEUE = "/admin/skills/skillrevision/"


def proposal(owner, name: str, experiences: int = 0, importance: float = 0.5, **fields: Any) -> SkillRevision:
    revision = make_proposal(owner, make_content(name=name), **fields)
    revision.experiences.add(*(make_experience(owner, importance=importance) for _ in range(experiences)))
    return revision


def listed(browser: Browser, **query: str) -> list[str]:
    """Return the names in the list, in its order."""
    answer = browser.get(QUEUE, query)
    assert answer.status_code == 200, answer
    return [row.name for row in answer.context["cl"].result_list]


def test_its_foot_counts_proposals_and_elsewhere_revisions(owner, reviewer, monkeypatch):
    proposal(owner, "one")
    proposal(owner, "other", state="rejected")

    def counted(**query: str) -> str:
        return reviewer.get(QUEUE, query).context["cl"].rows_counted

    assert counted() == "1 proposal"
    assert "1 proposal</div>" in reviewer.get(QUEUE).content.decode()
    assert counted(state="all") == "2 revisions"
    monkeypatch.setattr(CappedPaginator, "cap", 2)
    assert counted(state="all") == "2 revisions or more"


def test_by_each_flag(owner, reviewer):
    for flag in RISK_LABELS:
        proposal(owner, flag.replace("_", "-"), risk_flags=[flag])
    proposal(owner, "two", risk_flags=["credential", "new_address"])
    proposal(owner, "plain")

    found = {flag: set(listed(reviewer, risk=flag)) for flag in RISK_LABELS}

    both = {"credential", "new_address"}
    assert found == {
        flag: {flag.replace("_", "-")} | ({"two"} if flag in both else set()) for flag in RISK_LABELS
    }
    assert listed(reviewer, risk="none") == ["plain"]


def test_by_how_much_supports_it(owner, reviewer):
    for number in (0, 1, 2, 4, 5):
        proposal(owner, f"with-{number}", number)

    assert {each: set(listed(reviewer, support=each)) for each in ("none", "one", "few", "many")} == {
        "none": {"with-0"},
        "one": {"with-1"},
        "few": {"with-2", "with-4"},
        "many": {"with-5"},
    }


def test_by_how_long_it_waits(owner, reviewer):
    for days in (0, 2, 8, 40):
        row = proposal(owner, f"days-{days}")
        SkillRevision.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days))

    assert {each: set(listed(reviewer, age=each)) for each in ("new", "day", "week", "month")} == {
        "new": {"days-0"},
        "day": {"days-2", "days-8", "days-40"},
        "week": {"days-8", "days-40"},
        "month": {"days-40"},
    }


def test_by_kind_and_by_action(owner, reviewer):
    make_proposal(owner, make_content(name="a-script", entry_type="script"))
    skill = make_skill(owner, make_content(name="a-guide", entry_type="guide"))
    make_proposal(owner, make_content(name="a-guide", entry_type="guide", description="New."), skill)

    assert listed(reviewer, entry_type__exact="script") == ["a-script"]
    assert listed(reviewer, entry_type__exact="guide") == ["a-guide"]
    assert listed(reviewer, action__exact="edit") == ["a-guide"]


def test_by_run_and_only_ones_own_are_offered(owner, stranger, reviewer):
    runs = [make_run(owner) for _ in range(MAX_RUNS + 1)]
    for number, run in enumerate(runs):
        proposal(owner, f"of-{number}", run=run)
    proposal(owner, "of-0-too", run=runs[0])
    foreign = make_run(stranger)
    proposal(stranger, "foreign", run=foreign)

    assert set(listed(reviewer, run=runs[0].pk)) == {"of-0", "of-0-too"}
    assert listed(reviewer, run=foreign.pk) == []
    page = reviewer.get(QUEUE).content.decode()
    assert foreign.pk not in page
    assert [f"run={run.pk}" in page for run in runs] == [False] + [True] * MAX_RUNS


def test_by_organization_for_who_sees_several(owner, stranger, reviewer):
    proposal(owner, "here"), proposal(stranger, "there")
    everyone = as_user(make_superuser())

    assert set(listed(everyone)) == {"here", "there"}
    assert listed(everyone, organization=stranger.organization.pk) == ["there"]
    assert listed(reviewer) == ["here"]
    assert stranger.organization.pk not in reviewer.get(QUEUE).content.decode()


def test_filters_go_together(owner, reviewer):
    run = make_run(owner)
    proposal(owner, "wanted", 1, run=run, risk_flags=["credential"])
    proposal(owner, "unrisky", 1, run=run), proposal(owner, "unsupported", run=run)

    assert listed(reviewer, run=run.pk, risk="credential", support="one", age="new") == ["wanted"]


def test_the_most_important_first_and_the_other_way_round(owner, reviewer):
    for importance in (0.2, 0.9, 0.5):
        proposal(owner, f"weighs-{importance}".replace(".", ""), 1, importance)
    ordered = ["weighs-09", "weighs-05", "weighs-02"]
    answer = reviewer.get(QUEUE)
    column = list(answer.context["cl"].list_display).index("shown_priority")

    assert listed(reviewer) == ordered
    assert listed(reviewer, o=f"-{column}") == ordered
    assert listed(reviewer, o=str(column)) == ordered[::-1]


@pytest.mark.parametrize("name", ["risk", "support", "age", "run", "state"])
def test_a_value_that_no_filter_offers_is_text_and_does_no_harm(name, owner, reviewer):
    proposal(owner, "here")
    hostile = '"><img src=x onerror=alert(1)>'

    answer = reviewer.get(QUEUE, {name: hostile})

    assert answer.status_code == 200
    assert "<img src=x" not in answer.content.decode()


def test_a_reviewer_elsewhere_sees_none_of_it(owner):
    run = make_run(owner)
    proposal(owner, "not-for-you", 1, run=run)
    elsewhere = as_user(make_member(make_owner().organization, "administrator"))

    for query in ({}, {"run": run.pk}, {"state": "all"}, {"support": "one"}):
        assert listed(elsewhere, **query) == []
        assert "not-for-you" not in elsewhere.get(QUEUE, query).content.decode()
