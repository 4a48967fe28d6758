"""The log of searches in the admin, and the use of a skill on its page."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.selectors import searches
from tests.factories import make_content, make_member, make_search, make_skill
from tests.mirix.admin.test_pages import changelist, page
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db

LIST = changelist("skills.searchevent")


@pytest.fixture
def browser(owner):
    return as_user(make_member(owner.organization, "reviewer"))


@pytest.fixture
def skill(owner):
    return make_skill(owner, make_content(name="pay-an-order"))


def listed(browser, **asked) -> set[str]:
    answer = browser.get(LIST, asked)
    assert answer.status_code == 200
    return {event.pk for event in answer.context["cl"].result_list}


def test_the_list_is_narrowed_by_what_it_offers(browser, owner, stranger, skill):
    one = make_search(owner, [skill], degraded="no endpoint")
    two = make_search(owner, method="bm25", source="admin", end_user=None)
    make_search(stranger, [skill])
    assert listed(browser) == {one.pk, two.pk}
    assert listed(browser, degraded="yes") == {one.pk}
    assert listed(browser, degraded="no") == {two.pk}
    assert listed(browser, method="bm25") == {two.pk}
    assert listed(browser, source__exact="api") == {one.pk}
    assert listed(browser, q=skill.pk) == {one.pk}
    assert listed(browser, q=two.pk) == {two.pk}
    assert listed(browser, q="order") == set()


def test_the_page_shows_what_was_returned(browser, owner, skill):
    event = make_search(owner, [skill, make_skill(owner)], query="<b>pay</b>", degraded="no endpoint")
    gone = make_search(owner, skill_ids=["proc-gone"], revision_ids=[""], scores=[None])
    text = browser.get(page("skills.searchevent", event.pk)).content.decode()
    assert "&lt;b&gt;pay&lt;/b&gt;" in text
    assert page("skills.skill", skill.pk) in text
    assert page("skills.skillrevision", skill.current_revision_id) in text
    assert "no endpoint" in text
    assert "proc-gone, which is gone" in browser.get(page("skills.searchevent", gone.pk)).content.decode()


def test_the_page_shows_what_bounded_the_answer(browser, owner):
    bounded = make_search(owner, similarity_threshold=0.25, token_budget=2_000, filter_tags={"desk": "<eu>"})
    text = browser.get(page("skills.searchevent", bounded.pk)).content.decode()
    assert "<dt>Similarity threshold</dt><dd>0.25</dd>" in text
    assert "<dt>Token budget</dt><dd>2000</dd>" in text
    assert "&quot;desk&quot;: &quot;&lt;eu&gt;&quot;" in text
    text = browser.get(page("skills.searchevent", make_search(owner).pk)).content.decode()
    assert "<dt>Similarity threshold</dt><dd>–</dd>" in text
    assert "<dt>Token budget</dt><dd>–</dd>" in text


def test_a_skill_says_how_it_is_used(browser, owner, stranger, skill):
    empty = browser.get(page("skills.skill", skill.pk)).content.decode()
    assert "No search that is still in the log returned it." in empty
    event = make_search(owner, [skill], query="how is an order paid?")
    make_search(owner, [skill], query="", end_user=None)
    make_search(stranger, [skill], query="a secret of strangers")
    text = browser.get(page("skills.skill", skill.pk)).content.decode()
    assert ">2 times</a>, last just now." in text
    assert page("skills.searchevent", event.pk) in text
    assert "(newest first)" in text
    assert "all users" in text
    assert "a secret of strangers" not in text


def test_more_than_is_counted_is_said_to_be_more(browser, owner, skill, monkeypatch):
    monkeypatch.setattr(searches, "MOST", 2)
    monkeypatch.setattr("skills.admin.use_of_one.MOST", 2)
    for _ in range(3):
        make_search(owner, [skill])
    assert ">2+ times</a>" in browser.get(page("skills.skill", skill.pk)).content.decode()


def test_the_page_of_a_skill_costs_the_same_with_many_searches(browser, owner, skill):
    counts = []
    for total in (1, 12):
        for _ in range(total):
            make_search(owner, [skill])
        browser.get(page("skills.skill", skill.pk))
        with CaptureQueriesContext(connection) as queries:
            browser.get(page("skills.skill", skill.pk))
        counts.append(len(queries))
    assert counts[0] == counts[1]
