"""GET `/v1/skills`, `/v1/skills/{id}` and `/v1/skills/{id}/revisions`."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.models import Skill
from skills.review.publishing import approve, reject
from tests.factories import make_content, make_owner, make_proposal, make_skill

pytestmark = pytest.mark.django_db


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def moment(value) -> str:
    return value.isoformat().replace("+00:00", "Z")


def test_a_skill_is_shown_as_agents_get_it(read_api, owner):
    content = make_content(
        name="pay-an-order", examples=[{"input": "Pay #7", "output": None}], filter_tags={"team": "billing"}
    )
    skill = make_skill(owner, content, version="0.1.4")

    answer = read_api.get(f"/v1/skills/{skill.pk}")

    assert answer.status_code == 200
    assert answer.json() == {
        "id": skill.pk,
        "user_id": "alice",
        "name": "pay-an-order",
        "entry_type": "workflow",
        "description": content.description,
        "instructions": content.instructions,
        "triggers": ["pay an order"],
        "examples": [{"input": "Pay #7", "output": None}],
        "version": "0.1.4",
        "status": "active",
        "revision_id": skill.current_revision_id,
        "filter_tags": {"team": "billing"},
        "created_at": moment(skill.created_at),
        "updated_at": moment(Skill.objects.get().updated_at),
    }


def test_lists_are_newest_first_and_paged_by_cursor(read_api, owner):
    made = [make_skill(owner).pk for _ in range(5)]

    first = read_api.get("/v1/skills", {"limit": 2})
    second = read_api.get(first.json()["next"])

    assert ids(first) + ids(second) == made[:0:-1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"name": "pay"}, "pay"),
        ({"entry_type": "script"}, "script"),
        ({"status": "archived"}, "old"),
        ({"user_id": "bob"}, "bobs"),
        ({"user_id": "nobody"}, None),
        ({"created_before": "2020-01-01T00:00:00Z"}, None),
    ],
)
def test_lists_can_be_narrowed(read_api, owner, query, expected):
    made = {
        "pay": make_skill(owner, make_content(name="pay")),
        "script": make_skill(owner, make_content(entry_type="script")),
        "old": make_skill(owner, status="archived"),
        "bobs": make_skill(make_owner(owner.organization, "bob")),
    }

    assert ids(read_api.get("/v1/skills", query)) == ([made[expected].pk] if expected else [])


@pytest.mark.parametrize("query", [{"status": "lost"}, {"created_after": "soon"}, {"user_id": "a\x00b"}])
def test_wrong_filters_name_their_field(read_api, owner, query):
    answer = read_api.get("/v1/skills", query)

    assert answer.status_code == 400
    assert list(answer.json()) == list(query)


def test_the_past_of_a_skill(read_api, owner):
    skill = make_skill(owner)
    first = skill.current_revision
    edit = make_proposal(owner, make_content(name=skill.name), skill, risk_flags=["new_address"])
    approve(revision=edit, reason="Right.")
    waiting = make_proposal(owner, make_content(name=skill.name), skill, base=edit)
    make_skill(owner)

    answer = read_api.get(f"/v1/skills/{skill.pk}/revisions")

    assert ids(answer) == [waiting.pk, edit.pk, first.pk]
    edit.refresh_from_db()
    assert answer.json()["results"][1] == {
        "id": edit.pk,
        "user_id": "alice",
        "skill_id": skill.pk,
        "action": "edit",
        "state": "published",
        "version": "0.1.1",
        "base_id": first.pk,
        "base_version": "0.1.0",
        "supersedes_id": None,
        "merged_from": None,
        "author_kind": "offline",
        "run_id": None,
        "name": skill.name,
        "entry_type": "workflow",
        "description": edit.description,
        "instructions": edit.instructions,
        "triggers": ["pay an order"],
        "examples": [],
        "filter_tags": {},
        "content_hash": edit.content_hash,
        "rationale": "",
        "risks": [{"flag": "new_address", "meaning": "Names an outside address that was not there before"}],
        "unsupported": [],
        "decisions": [
            {
                "decision": "approve",
                "decided_by": None,
                "decided_by_kind": "human",
                "reason": "Right.",
                "created_at": moment(edit.decisions.get().created_at),
            }
        ],
        "created_at": moment(edit.created_at),
        "decided_at": moment(edit.decided_at),
    }
    assert ids(read_api.get(f"/v1/skills/{skill.pk}/revisions", {"state": "proposed"})) == [waiting.pk]


@pytest.mark.parametrize("path", ["/v1/skills/{}", "/v1/skills/{}/revisions"])
def test_a_strangers_skill_is_not_there(stranger_api, owner, path):
    skill = make_skill(owner)

    foreign = stranger_api.get(path.format(skill.pk))
    missing = stranger_api.get(path.format("proc-none"))
    odd = stranger_api.get(path.format("proc%00"))

    assert foreign.status_code == missing.status_code == odd.status_code == 404
    assert foreign.content == missing.content == odd.content == b'{"detail":"Not found."}'


def test_a_stranger_sees_no_skill(stranger_api, owner):
    make_skill(owner)

    assert ids(stranger_api.get("/v1/skills")) == []
    assert ids(stranger_api.get("/v1/skills", {"user_id": "alice"})) == []


@pytest.mark.parametrize("path", ["/v1/skills", "/v1/skills/x", "/v1/skills/x/revisions"])
def test_nobody_reads_without_a_key(client, db, path):
    assert client.get(path).status_code == 401


@pytest.mark.parametrize("path", ["/v1/skills", "/v1/skills/{}", "/v1/skills/{}/revisions"])
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_skills_have_no_write_routes(admin_api, owner, path, method):
    skill = make_skill(owner)

    assert getattr(admin_api, method)(path.format(skill.pk), {}, format="json").status_code == 405

    assert Skill.objects.count() == 1


def queries(api, path) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert api.get(path).status_code == 200
    return len(captured)


def test_a_longer_list_takes_no_more_queries(read_api, owner):
    make_skill(owner)
    read_api.get("/v1/skills")
    one = queries(read_api, "/v1/skills")
    for _ in range(19):
        make_skill(owner)

    assert queries(read_api, "/v1/skills") == one == 2


def test_a_longer_past_takes_no_more_queries(read_api, owner):
    skill = make_skill(owner)
    path = f"/v1/skills/{skill.pk}/revisions"
    reject(revision=make_proposal(owner, make_content(name=skill.name), skill), reason="No.")
    read_api.get(path)
    few = queries(read_api, path)
    for _ in range(19):
        reject(revision=make_proposal(owner, make_content(name=skill.name), skill), reason="No.")

    assert queries(read_api, path) == few == 4
