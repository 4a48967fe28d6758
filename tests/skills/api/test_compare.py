"""GET `/v1/skills/{id}/revisions/compare`, and the filters of a skill's past."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.content import Content
from skills.models import Skill
from skills.review.history import archive, restore, rollback
from skills.review.publishing import approve
from tests.factories import make_content, make_proposal, make_skill

pytestmark = pytest.mark.django_db


@pytest.fixture
def skill(owner) -> Skill:
    """At 0.1.3: made, edited, rolled back, archived."""
    first = approve(revision=make_proposal(owner, make_content(name="pay", instructions="1. Ask.")))
    text = replace(Content.of(first), instructions="1. Ask twice.", triggers=["pay", "buy"])
    second = approve(revision=make_proposal(owner, text, first))
    rollback(skill=second, to=second.revisions.get(version="0.1.0"), reason="No.")
    archive(skill=Skill.objects.get(), reason="No.")
    return Skill.objects.get()


def path(skill: Skill) -> str:
    return f"/v1/skills/{skill.pk}/revisions/compare"


def test_two_versions_word_by_word(read_api, skill):
    old, new = skill.revisions.get(version="0.1.0"), skill.revisions.get(version="0.1.1")

    answer = read_api.get(path(skill), {"from": "0.1.0", "to": new.pk})

    assert answer.status_code == 200
    said = answer.json()
    assert (said["skill_id"], said["added"], said["removed"]) == (skill.pk, 2, 2)
    assert (said["from"]["id"], said["from"]["version"], said["from"]["action"]) == (
        old.pk,
        "0.1.0",
        "create",
    )
    assert (said["to"]["id"], said["to"]["state"], said["to"]["content_hash"]) == (
        new.pk,
        "published",
        new.content_hash,
    )
    assert said["changes"][0] == {
        "field": "instructions",
        "added": 1,
        "removed": 0,
        "segments": [
            {"kind": "equal", "text": "1. Ask"},
            {"kind": "insert", "text": " twice"},
            {"kind": "equal", "text": "."},
        ],
    }
    assert [change["field"] for change in said["changes"]] == ["instructions", "triggers"]


@pytest.mark.parametrize(
    ("query", "versions", "fields"),
    [
        ({}, ("0.1.2", "0.1.3"), []),
        ({"to": "0.1.2"}, ("0.1.1", "0.1.2"), ["instructions", "triggers"]),
        ({"from": "0.1.0"}, ("0.1.0", "0.1.3"), []),
        ({"from": "0.1.2", "to": "0.1.1"}, ("0.1.2", "0.1.1"), ["instructions", "triggers"]),
        (
            {"to": "0.1.0"},
            (None, "0.1.0"),
            ["name", "entry_type", "description", "instructions", "triggers"],
        ),
    ],
)
def test_what_is_left_out_is_today_and_what_was_before(read_api, skill, query, versions, fields):
    said = read_api.get(path(skill), query).json()

    assert (said["from"] and said["from"]["version"], said["to"]["version"]) == versions
    assert [change["field"] for change in said["changes"]] == fields


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "9.9.9"}, "from"),
        ({"to": "rev-none"}, "to"),
        ({"to": "a\x00"}, "to"),
        ({"form": "1"}, "form"),
    ],
)
def test_what_means_nothing_is_named(read_api, skill, query, field):
    answer = read_api.get(path(skill), query)

    assert (answer.status_code, list(answer.json())) == (400, [field])


def test_a_revision_of_another_skill_is_none_of_this_one(read_api, owner, skill):
    other = make_skill(owner).current_revision

    assert read_api.get(path(skill), {"from": other.pk}).status_code == 400


def test_a_strangers_skill_is_not_there(stranger_api, read_api, skill):
    foreign, missing = stranger_api.get(path(skill)), stranger_api.get("/v1/skills/x/revisions/compare")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content
    assert read_api.get(path(skill), {"user_id": "bob"}).status_code == 404
    assert read_api.post(path(skill), {}, format="json").status_code == 405


def test_a_longer_past_costs_no_more_queries(read_api, owner, skill):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert read_api.get(path(skill), {"from": "0.1.0", "to": "0.1.1"}).status_code == 200
        return len(captured)

    queries()
    few = queries()
    for _ in range(19):
        make_proposal(owner, make_content(name="pay"), skill, state="rejected")
    assert queries() == few == 6


@pytest.mark.parametrize(
    ("query", "versions"),
    [
        ({"action": "rollback"}, ["0.1.2"]),
        ({"version": "0.1.1"}, ["0.1.1"]),
        ({"author_kind": "human"}, ["0.1.3", "0.1.2"]),
        ({"author_kind": "offline", "state": "published"}, ["0.1.1", "0.1.0"]),
        ({"created_before": "2020-01-01T00:00:00Z"}, []),
    ],
)
def test_the_past_can_be_narrowed(read_api, skill, query, versions):
    answer = read_api.get(f"/v1/skills/{skill.pk}/revisions", query)

    assert [row["version"] for row in answer.json()["results"]] == versions


def test_the_past_comes_in_pages(read_api, skill):
    first = read_api.get(f"/v1/skills/{skill.pk}/revisions", {"limit": 3}).json()
    second = read_api.get(first["next"]).json()

    rows = first["results"] + second["results"]
    assert [row["version"] for row in rows] == ["0.1.3", "0.1.2", "0.1.1", "0.1.0"]
    assert second["next"] is None


def test_archived_is_found_by_no_search(read_api, owner, skill):
    for method in ("hybrid", "bm25", "string_match"):
        asked = {"query": "ask", "user_id": "alice", "search_method": method}
        assert read_api.get("/memory/search", asked).json()["count"] == 0
        assert read_api.get("/memory/search_all_users", {"query": "ask"}).json()["count"] == 0
    restore(skill=skill, reason="Yes.")
    for method in ("hybrid", "bm25", "string_match"):
        asked = {"query": "ask", "user_id": "alice", "search_method": method}
        assert read_api.get("/memory/search", asked).json()["count"] == 1
