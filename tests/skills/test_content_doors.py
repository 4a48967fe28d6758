"""Strict on write, lenient on read: what the rules of a skill's content mean at the doors of API and files.

The forms of the admin are in `admin/test_history.py`, the rules themselves in `review/test_validation.py`.
"""

from __future__ import annotations

import json

import pytest

from skills.interop.exporting import skill_md
from skills.interop.importing import import_skills
from skills.interop.sources import Found
from skills.models import Skill, SkillRevision
from skills.search.index import index_skill
from tests.conftest import bearer
from tests.factories import make_content, make_member, make_proposal, make_skill, make_token

pytestmark = pytest.mark.django_db

BROKEN = [
    ({"description": " "}, "description: Must not be blank."),
    ({"instructions": "x" * 65_537}, "instructions: At most 65,536 characters; this has 65,537."),
    ({"triggers": ["x" * 513]}, "triggers: Trigger 1 has 513 characters; at most 512."),
    ({"examples": ["pay"]}, "examples: Example 1 must be an object."),
    (
        {"examples": [{"a": "x" * 65_526}]},
        "examples: At most 65,536 characters as JSON; this has 65,537.",
    ),
    (
        {"filter_tags": {"a": "x" * 65_528}},
        "filter_tags: At most 65,536 characters as JSON; this has 65,537.",
    ),
]


@pytest.mark.parametrize(("fields", "message"), BROKEN)
def test_the_api_publishes_nothing_that_breaks_a_rule(owner, fields, message):
    member = make_member(owner.organization, "reviewer")
    proposal = make_proposal(owner, make_content(name="pay", **fields))

    answer = bearer(make_token(member, owner.organization)).post(f"/v1/proposals/{proposal.pk}/approve")

    assert answer.status_code == 409
    assert answer.json() == {"detail": f"{message} Reject it: as it is, it cannot be published."}
    proposal.refresh_from_db()
    assert (proposal.state, Skill.objects.count()) == ("proposed", 0)


@pytest.mark.parametrize(
    ("more", "body", "message"),
    [
        ("", "x" * 65_537, "instructions: At most 65,536 characters; this has 65,537."),
        (
            f"metadata:\n  mirix-filter-tags: {json.dumps(json.dumps({'a': 'x' * 65_528}))}\n",
            "1. Pay.",
            "filter_tags: At most 65,536 characters as JSON; this has 65,537.",
        ),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_by_its_field(owner, more, body, message):
    data = f"---\nname: pay\ndescription: How to pay.\n{more}---\n\n{body}\n"

    [outcome] = import_skills(owner=owner, found=[Found(place="SKILL.md", data=data.encode())])

    assert (outcome.status, outcome.reason) == ("refused", message)
    assert not SkillRevision.objects.exists()


def test_triggers_of_a_file_beyond_the_rules_are_left_out_and_named(owner):
    text = json.dumps(json.dumps(["pay"] * 51))
    data = f"---\nname: pay\ndescription: Pay.\nmetadata:\n  mirix-triggers: {text}\n---\n\n1. Pay.\n"

    [outcome] = import_skills(owner=owner, found=[Found(place="SKILL.md", data=data.encode())])

    assert (outcome.status, outcome.warnings) == (
        "new",
        ["mirix-triggers holds no triggers and was left out."],
    )
    assert SkillRevision.objects.get().triggers == []


ODD = ["NaN", "-Infinity", "1e999", "[" * 100 + "]" * 100]


@pytest.mark.parametrize("odd", ODD)
def test_json_of_a_file_that_cannot_be_kept_is_named(owner, odd):
    tags = json.dumps(f'{{"team": {odd}}}')
    data = f"---\nname: pay\ndescription: Pay.\nmetadata:\n  mirix-filter-tags: {tags}\n---\n\n1. Pay.\n"

    [outcome] = import_skills(owner=owner, found=[Found(place="SKILL.md", data=data.encode())])

    assert (outcome.status, outcome.warnings) == (
        "new",
        ["mirix-filter-tags holds no tags and was left out."],
    )
    assert SkillRevision.objects.get().filter_tags == {}


@pytest.mark.parametrize("odd", ODD)
def test_examples_of_a_file_that_cannot_be_kept_stay_text(owner, stranger, odd):
    skill = make_skill(owner, make_content(name="pay", examples=[{"input": 12345}]))
    data = skill_md(skill=skill).replace(b"12345", f"[{odd}]".encode())
    assert odd.encode() in data

    [outcome] = import_skills(owner=stranger, found=[Found(place="SKILL.md", data=data)])

    assert outcome.warnings == [
        "Its section of examples was changed; it is kept as a part of the instructions."
    ]
    revision = SkillRevision.objects.get(state="proposed")
    assert revision.examples == []
    assert odd in revision.instructions


def test_what_came_before_the_rules_is_read_shown_and_found(owner, read_api):
    content = make_content(
        name="pay",
        description="",
        instructions="Pay the frobnicator. " * 4_000,
        triggers=["x" * 600, 7, None, {"when": "now"}],
        examples=["pay", 7, [1]],
    )
    skill = make_skill(owner, content, version="1.2.3-rc.1")
    index_skill(skill)

    shown = read_api.get(f"/v1/skills/{skill.pk}")
    assert (shown.status_code, shown.json()["triggers"]) == (200, content.triggers)
    assert shown.json()["instructions"] == content.instructions
    assert read_api.get("/v1/skills").json()["results"][0]["id"] == skill.pk
    assert read_api.get(f"/v1/skills/{skill.pk}/revisions").status_code == 200
    assert read_api.get(f"/v1/skills/{skill.pk}/SKILL.md").status_code == 200
    found = read_api.get("/memory/search", {"query": "frobnicator", "user_id": "alice"}).json()["results"]
    assert [row["id"] for row in found] == [skill.pk]
