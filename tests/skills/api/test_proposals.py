"""GET `/v1/proposals` and `/v1/proposals/{id}`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.content import Content
from skills.review.merges import propose_merge
from skills.review.publishing import reject
from tests.factories import (
    make_content,
    make_experience,
    make_owner,
    make_proposal,
    make_run,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_a_proposal_shows_what_changes_and_why(read_api, owner):
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask.\n2. Charge it."))
    content = replace(Content.of(skill), instructions="1. Ask.\n2. Check the balance.\n3. Charge it.")
    proposal = make_proposal(owner, content, skill, run=make_run(owner))
    session = make_session(owner, [{"role": "user", "content": "No, use the other card."}])
    weak = make_experience(owner, session, importance=0.5, credibility=0.5)
    strong = make_experience(owner, session, importance=0.8, credibility=0.9)
    proposal.experiences.add(weak, strong)

    answer = read_api.get(f"/v1/proposals/{proposal.pk}").json()

    assert (answer["id"], answer["state"], answer["version"]) == (proposal.pk, "proposed", "")
    assert (answer["skill_id"], answer["base_version"]) == (skill.pk, "0.1.0")
    assert (answer["run_id"], answer["evidence_count"]) == (proposal.run_id, 2)
    assert answer["priority"] == pytest.approx(0.72)
    assert answer["changes"] == [
        {
            "field": "instructions",
            "added": 4,
            "removed": 0,
            "segments": [
                {"kind": "equal", "text": "1. Ask.\n2. "},
                {"kind": "insert", "text": "Check the balance.\n3. "},
                {"kind": "equal", "text": "Charge it."},
            ],
        }
    ]
    assert [item["id"] for item in answer["evidence"]] == [strong.pk, weak.pk]
    assert answer["evidence"][0] == {
        "id": strong.pk,
        "session_id": session.session_id,
        "experience_type": "worth_learning",
        "title": strong.title,
        "importance": 0.8,
        "credibility": 0.9,
        "signal_type": "user_critique",
        "quote": "use the other card",
        "turn": f"convmsg-{strong.turn_id}",
        "turn_seq": 1,
        "verified": True,
        "quarantined": False,
    }


def test_the_list_holds_what_waits_and_a_decided_one_is_found_by_its_id(read_api, owner):
    waiting, unwanted = make_proposal(owner), make_proposal(owner)
    reject(revision=unwanted, reason="Too vague.")

    assert ids(read_api.get("/v1/proposals")) == [waiting.pk]
    answer = read_api.get(f"/v1/proposals/{unwanted.pk}").json()
    assert (answer["state"], answer["decisions"][0]["reason"]) == ("rejected", "Too vague.")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"name": "pay"}, "pay"),
        ({"action": "edit"}, "edit"),
        ({"author_kind": "human"}, "hand"),
        ({"user_id": "bob"}, "bobs"),
        ({"user_id": "nobody"}, None),
    ],
)
def test_lists_can_be_narrowed(read_api, owner, query, expected):
    made = {
        "pay": make_proposal(owner, make_content(name="pay")),
        "edit": make_proposal(owner, skill=make_skill(owner)),
        "hand": make_proposal(owner, author_kind="human"),
        "bobs": make_proposal(make_owner(owner.organization, "bob")),
    }

    assert ids(read_api.get("/v1/proposals", query)) == ([made[expected].pk] if expected else [])


def test_the_proposals_of_a_run_and_of_a_skill(read_api, owner):
    skill, run = make_skill(owner), make_run(owner)
    of_skill, of_run = make_proposal(owner, skill=skill), make_proposal(owner, run=run)

    assert ids(read_api.get("/v1/proposals", {"skill_id": skill.pk})) == [of_skill.pk]
    assert ids(read_api.get("/v1/proposals", {"run_id": run.pk})) == [of_run.pk]


def test_a_stranger_sees_no_proposal(stranger_api, owner):
    proposal = make_proposal(owner)

    assert ids(stranger_api.get("/v1/proposals")) == []
    foreign = stranger_api.get(f"/v1/proposals/{proposal.pk}")
    missing = stranger_api.get("/v1/proposals/rev-none")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content == b'{"detail":"Not found."}'


def test_nobody_reads_without_a_key(client, db):
    assert client.get("/v1/proposals").status_code == client.get("/v1/proposals/x").status_code == 401


def test_longer_lists_and_more_evidence_take_no_more_queries(read_api, owner):
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert read_api.get(path).status_code == 200
        return len(captured)

    proposal = make_proposal(owner)
    proposal.experiences.add(make_experience(owner))
    one = f"/v1/proposals/{proposal.pk}"
    read_api.get(one)
    few, little = queries("/v1/proposals"), queries(one)
    proposal.experiences.add(*(make_experience(owner) for _ in range(19)))
    for _ in range(19):
        make_proposal(owner, skill=make_skill(owner))

    assert queries("/v1/proposals") == few == 3
    assert queries(one) == little == 4


def test_a_merge_names_the_skill_that_it_takes_in(read_api, owner):
    source, target = make_skill(owner, make_content(name="settle")), make_skill(owner)
    proposal = propose_merge(source=source, target=target)
    named = {
        "skill_id": source.pk,
        "revision_id": source.current_revision.pk,
        "name": "settle",
        "version": "0.1.0",
    }

    assert read_api.get(f"/v1/proposals/{proposal.pk}").json()["merged_from"] == named
    assert [row["merged_from"] for row in read_api.get("/v1/proposals").json()["results"]] == [named]
