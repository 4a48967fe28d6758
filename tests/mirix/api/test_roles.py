"""What members may do over the API, by role, and that they say for whom."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants.models import Client, EndUser
from skills.models import AutoDreamRun
from tests.factories import make_session

pytestmark = pytest.mark.django_db
ROLES = ("reviewer", "operator", "administrator", "superuser")
MESSAGES = {"messages": [{"role": "user", "content": "hi"}], "session_id": "s-1"}
LISTS = [
    "/v1/sessions",
    "/v1/intake",
    "/v1/experiences",
    "/v1/runs",
    "/v1/skills",
    "/v1/proposals",
    "/memory/search_all_users",
]
READS_OF_ONE_USER = ["/memory/search", "/v1/sessions/s-1", "/v1/sessions/s-1/turns"]
WRITES: list[tuple[str, dict[str, Any], int]] = [
    ("/users/create_or_get", {}, 201),
    ("/memory/add", MESSAGES, 200),
    ("/memory/add_sync", MESSAGES, 200),
    ("/v1/sessions/s-1/close", {}, 200),
    ("/memory/auto_dream?wait=0", {}, 202),
]
REQUIRED = {"user_id": ["This field is required: a member has no default end user."]}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reads(member_api, owner, role):
    make_session(owner, session_id="s-1")
    api = member_api(role)

    for path in LISTS:
        assert api.get(path).status_code == 200, path
    for path in READS_OF_ONE_USER:
        assert api.get(path, {"user_id": "alice"}).status_code == 200, path


@pytest.mark.parametrize(("path", "body", "status"), WRITES)
@pytest.mark.parametrize("role", ROLES)
def test_reviewers_write_nothing_and_the_others_do(member_api, owner, role, path, body, status):
    make_session(owner, session_id="s-1", state="open")
    answer = member_api(role).post(
        path, body | {"user_id": "bob" if status == 201 else "alice"}, format="json"
    )

    if role != "reviewer":
        assert answer.status_code == status, answer.content
        return
    assert answer.status_code == 403
    assert answer.json() == {"detail": "This needs the role operator or administrator; yours is reviewer."}
    assert Session.objects.get().state == "open"
    assert not IntakeRecord.objects.exists()
    assert not AutoDreamRun.objects.exists()
    assert EndUser.objects.count() == 1


@pytest.mark.parametrize("path", READS_OF_ONE_USER)
def test_a_member_says_whose_rows_to_read(member_api, owner, path):
    make_session(owner, session_id="s-1")
    api = member_api("reviewer")

    for query in ({}, {"user_id": ""}):
        answer = api.get(path, query)
        assert (answer.status_code, answer.json()) == (400, REQUIRED)


@pytest.mark.parametrize(("path", "body", "status"), WRITES)
def test_a_member_says_for_whom_to_write(member_api, owner, path, body, status):
    make_session(owner, session_id="s-1", state="open")

    answer = member_api("administrator").post(path, body, format="json")

    assert (answer.status_code, answer.json()) == (400, REQUIRED)
    assert not IntakeRecord.objects.exists()
    assert not Client.objects.filter(name="members").exists()
    assert EndUser.objects.count() == 1


def test_what_members_add_belongs_to_a_client_of_their_own(member_api, owner):
    for role in ("operator", "administrator"):
        body = MESSAGES | {"user_id": "alice", "session_id": role}
        assert member_api(role).post("/memory/add_sync", body, format="json").status_code == 200

    client = Client.objects.get(organization=owner.organization, name="members")
    assert list(IntakeRecord.objects.values_list("client", flat=True)) == [client.pk] * 2
    assert list(ConversationMessage.objects.values_list("client", flat=True)) == [client.pk] * 2


def test_a_search_across_the_organization_names_no_client(member_api, owner):
    answer = member_api("reviewer").get("/memory/search_all_users").json()

    assert (answer["client_id"], answer["organization_id"]) == (None, owner.organization.pk)


@pytest.mark.parametrize("role", ROLES)
def test_members_of_others_find_nothing(member_api, stranger, owner, role):
    make_session(owner, session_id="s-1")
    api = member_api(role, stranger.organization)

    for path in LISTS:
        assert api.get(path).json()["results"] == [], path
    answers = [api.get(f"/v1/sessions/{name}", {"user_id": "alice"}) for name in ("s-1", "none")]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, b'{"detail":"Not found."}')}
