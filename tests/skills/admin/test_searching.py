"""The page of the admin on which people search as an agent does."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from mirix.tenants.models import Membership
from skills.models import SearchEvent
from skills.search.embedding import embed_missing
from skills.search.service import DEGRADED
from tests.factories import make_member, make_organization, make_owner, make_search
from tests.mirix.admin.test_pages import page
from tests.skills.admin.conftest import as_user
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db

TRY = "/admin/skills/searchevent/try/"


@pytest.fixture
def browser(owner):
    return as_user(make_member(owner.organization, "reviewer", "rita"))


@pytest.fixture
def skills(owner):
    return publish(
        owner,
        [
            {"name": "charge-card", "description": "Charge a card.", "filter_tags": {"desk": "eu"}},
            {"name": "refund", "description": "Money back.", "instructions": "To the card."},
            {"name": "greet", "description": "Say hello."},
        ],
    )


def names(answer) -> list[str]:
    assert answer.status_code == 200, answer.context["form"].errors
    return [hit.skill.name for hit, _ in answer.context["hits"]]


def test_it_is_in_the_navigation_under_the_searches(browser):
    text = browser.get(reverse("admin:index")).content.decode()
    assert reverse("admin:skills_searchevent_try") == TRY
    assert text.index(reverse("admin:skills_searchevent_changelist")) < text.index(TRY)


def test_it_shows_what_an_agent_gets_and_why(browser, owner, skills):
    answer = browser.get(TRY, {"query": "charge the card", "user_id": "alice"})
    assert names(answer) == ["charge-card", "refund"]
    first, second = (hit for hit, _ in answer.context["hits"])
    assert (first.terms, second.terms) == (["charg", "card"], ["card", "the"])
    text = answer.content.decode()
    assert page("skills.skill", first.skill.pk) in text
    assert f"{first.score:.4f}" in text
    assert "Money back." in text
    places = dict(answer.context["hits"][1][1])
    assert places["All fields"].rank == 2
    assert places["Name and description"] is None
    assert "not in it" in text


def test_it_shows_the_lanes_side_by_side(browser, owner, skills):
    answer = browser.get(TRY, {"query": "charge the card", "limit": "1"})
    whole, head, semantic = answer.context["lanes"]
    assert [(lane.label, lane.total) for lane in (whole, head, semantic)] == [
        ("All fields", 2),
        ("Name and description", 1),
        ("Semantic", 0),
    ]
    assert [(row.rank, row.skill.name, row.place) for row in whole.rows] == [
        (1, "charge-card", 1),
        (2, "refund", None),  # ranked, and beyond the limit
    ]
    assert semantic.is_missing
    assert f"It could not answer: {DEGRADED}." in answer.content.decode()


def test_it_says_in_plain_words_what_the_answer_lacks(browser, skills):
    text = browser.get(TRY, {"query": "card"}).content.decode()
    assert "This answer is degraded." in text
    assert "Nothing could be compared by meaning; it was ranked by words alone." in text
    assert "MIRIX_EMBEDDING_MODEL" in text
    assert (
        "This answer is degraded."
        not in browser.get(TRY, {"query": "card", "search_method": "bm25"}).content.decode()
    )


def test_the_semantic_lane_stands_beside_the_others(browser, owner, endpoint):
    endpoint.script.embed = lambda text: [0.8, 0.6] if "pay" in text else [1.0, 0.0]
    publish(owner, [{"name": "card"}, {"name": "payment"}])
    embed_missing()
    answer = browser.get(TRY, {"query": "card", "user_id": "alice", "similarity_threshold": "0.5"})
    lanes = {lane.name: [(row.rank, row.skill.name) for row in lane.rows] for lane in answer.context["lanes"]}
    assert lanes == {
        "all": [(1, "card")],
        "name_description": [(1, "card")],
        "semantic": [(1, "card"), (2, "payment")],
    }
    assert "This answer is degraded." not in answer.content.decode()
    publish(owner, [{"name": "another-card"}])
    partly = browser.get(TRY, {"query": "card", "user_id": "alice"}).content.decode()
    assert "A part of the skills could be found by words alone." in partly
    assert "1 of 3 skills have no embedding yet" in partly


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"query": ""}, ["greet", "refund", "charge-card"]),
        ({"query": "", "limit": "2"}, ["greet", "refund"]),
        ({"query": "card", "search_field": "instructions"}, ["refund"]),
        ({"query": "card", "search_method": "bm25"}, ["charge-card", "refund"]),
        ({"query": "ARGE A", "search_method": "string_match"}, ["charge-card"]),
        ({"query": "card", "filter_tags": '{"desk": "eu"}'}, ["charge-card"]),
        ({"query": "card", "similarity_threshold": "0.3"}, ["charge-card", "refund"]),
        ({"query": "card", "user_id": "  alice "}, ["charge-card", "refund"]),
    ],
)
def test_it_takes_what_the_api_takes(browser, skills, asked, found):
    assert names(browser.get(TRY, asked)) == found


def test_a_search_of_all_users_says_whose_each_skill_is(browser, owner, skills):
    publish(make_owner(owner.organization, "bob"), [{"name": "card-two"}])
    answer = browser.get(TRY, {"query": "card"})
    assert "card-two" in names(answer)
    assert "of <bdi>bob</bdi>" in answer.content.decode()
    assert "card-two" not in names(browser.get(TRY, {"query": "card", "user_id": "alice"}))


def test_nothing_found_says_what_to_do(browser, skills):
    answer = browser.get(TRY, {"query": "zebra"})
    assert names(answer) == []
    text = answer.content.decode()
    assert "No skill was found." in text
    assert "Ask in other words" in text


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("user_id", "nobody", "has no end user of this id"),
        ("limit", "0", "greater than or equal to 1"),
        ("limit", "101", "less than or equal to 100"),
        ("limit", "many", "Enter a whole number"),
        ("search_method", "magic", "Select a valid choice"),
        ("search_field", "secret", "Select a valid choice"),
        ("filter_tags", "{", "This is not valid JSON."),
        ("filter_tags", '{"a": {"$where": 1}}', "is no operator"),
        ("similarity_threshold", "nan", "Enter a number."),
        ("similarity_threshold", "3", "less than or equal to 2"),
        ("organization", "nothing", "There is no such organization among yours."),
        ("organization", "", "This field is required."),
    ],
)
def test_what_is_wrong_is_said_at_its_field(browser, skills, field, value, message):
    answer = browser.get(TRY, {"query": "card", field: value})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]
    assert message in str(answer.context["form"].errors[field])
    assert not SearchEvent.objects.exists()


def test_a_foreign_organization_is_refused_as_one_that_is_not_there(browser, owner, stranger, skills):
    publish(stranger, [{"name": "card-of-strangers"}])
    asked = {"query": "card", "user_id": stranger.end_user.user_id}
    foreign = browser.get(TRY, asked | {"organization": stranger.organization.pk})
    assert foreign.status_code == 400
    text = foreign.content.decode()
    assert "There is no such organization among yours." in text
    assert stranger.organization.name not in text
    assert "card-of-strangers" not in text
    unasked = browser.get(TRY, {"organization": stranger.organization.pk}).content.decode()
    assert stranger.organization.name not in unasked
    assert names(browser.get(TRY, {"query": "card"})) == ["charge-card", "refund"]


def test_a_member_of_several_organizations_chooses_one(owner, skills):
    user = make_member(owner.organization)
    second = make_organization("second of mine")
    Membership.objects.create(user=user, organization=second, role="reviewer")
    browser = as_user(user)
    start = browser.get(TRY)
    assert f"?organization={second.pk}" in start.content.decode()
    assert browser.get(TRY, {"query": "card"}).status_code == 400
    assert names(browser.get(TRY, {"query": "card", "organization": second.pk})) == []
    assert len(names(browser.get(TRY, {"query": "card", "organization": owner.organization.pk}))) == 2


def test_what_others_wrote_is_only_text(browser, owner):
    publish(owner, [{"name": "card", "description": "<script>alert(1)</script> & a card\u202e"}])
    answer = browser.get(TRY, {"query": '"><img src=x onerror=alert(2)> card\x00', "user_id": "alice"})
    text = answer.content.decode()
    assert names(answer) == ["card"]
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; a card" in text
    assert "<img src=x" not in text
    assert "\u202e" not in text


def test_a_search_is_logged_once_it_is_sent(browser, owner, skills):
    asked = {"query": "card", "user_id": "alice", "limit": "1", "search_field": "name"}
    answer = browser.get(TRY, asked | {"similarity_threshold": "0.5"})
    event = SearchEvent.objects.get()
    assert (event.source, event.user.username, event.client) == ("admin", "rita", None)
    assert (event.organization, event.end_user) == (owner.organization, owner.end_user)
    assert (event.query, event.field, event.limit, event.method) == ("card", "name", 1, "hybrid")
    assert (event.similarity_threshold, event.token_budget) == (0.5, None)
    assert event.skill_ids == [hit.skill.pk for hit, _ in answer.context["hits"]]
    browser.get(TRY)
    assert SearchEvent.objects.count() == 1


def test_it_says_how_skills_are_used(browser, owner, stranger, skills):
    charge, refund, greet = skills
    for _ in range(2):
        make_search(owner, [charge], degraded="no endpoint")
    make_search(owner, [refund])
    make_search(owner, [greet], source="admin")  # looking counts as no use
    make_search(owner, [greet], created_at=timezone.now() - timedelta(days=40))
    make_search(stranger, publish(stranger, [{"name": "of-strangers"}]))
    answer = browser.get(TRY)
    assert answer.context["most"] == [(charge, "2 times"), (refund, "1 time")]
    assert list(answer.context["never"]) == [greet]
    assert answer.context["never_count"] == "1 active skill"
    assert answer.context["degraded"] == [(timezone.localdate(), "2 answers")]
    text = answer.content.decode()
    assert "Nothing is searched yet." in text
    assert f"/admin/skills/searchevent/?q={charge.pk}" in text
    assert page("skills.skill", greet.pk) in text
    assert "of-strangers" not in text
    see = f"/admin/skills/searchevent/?degraded=yes&source__exact=api&organization={owner.organization.pk}"
    assert len(browser.get(see).context["cl"].result_list) == 2


def test_without_any_search_it_says_so(browser):
    text = browser.get(TRY).content.decode()
    assert "No search returned a skill." in text
    assert "None: every active skill was returned, or there is none." in text


def test_the_server_decides_the_method_where_none_is_chosen(browser, skills, monkeypatch):
    monkeypatch.setattr(settings, "MIRIX_SKILL_SEARCH_METHOD", "bm25")
    assert browser.get(TRY, {"query": "card"}).context["result"].method == "bm25"
