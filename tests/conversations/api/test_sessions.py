"""GET /v1/sessions…, POST …/close: an end user's sessions and turns, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from conversations.models import ConversationMessage, Session
from mirix.tenants.models import AuditEvent
from skills.models import AutoDreamRun
from tests.factories import make_owner, make_session

USER = "?user_id=alice"
NOT_FOUND = b'{"detail":"Not found."}'
TURNS = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": "[call pay] {}", "tool_calls": [{"id": "c1", "name": "pay"}]},
    {"role": "tool", "content": "[pay] Error: no", "tool_name": "pay", "is_error": True},
]


@pytest.fixture
def session(owner, client_row) -> Session:
    return make_session(owner, TURNS, client_row, session_id="s-1", state="open", filter_tags={"a": 1})


def ids(response: Any) -> list[str]:
    return [row["session_id"] for row in response.json()["results"]]


def queries(api: APIClient, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert api.get(path).status_code == 200
    return len(captured)


class TestList:
    def test_the_row(self, api, session):
        [row] = api.get(f"/v1/sessions{USER}").json()["results"]
        assert row == {
            "session_id": "s-1",
            "user_id": "alice",
            "tag": "task",
            "filter_tags": {"a": 1},
            "state": "open",
            "turn_count": 3,
            "first_turn_at": None,
            "last_turn_at": None,
            "reopened_at": None,
            "closed_at": None,
            "sealed_at": None,
            "distilled_at": None,
            "distilled_through": 0,
            "pruned_through": 0,
            "pruned_at": None,
            "attempts": 0,
            "next_attempt_at": None,
            "last_error": "",
            "created_at": row["created_at"],
        }

    def test_newest_first_by_cursor(self, api, owner):
        for name in "abcde":
            make_session(owner, session_id=name)
        first = api.get(f"/v1/sessions{USER}&limit=2")
        second = api.get(first.json()["next"])
        third = api.get(second.json()["next"])
        assert [ids(page) for page in (first, second, third)] == [["e", "d"], ["c", "b"], ["a"]]
        assert third.json()["next"] is None

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("state=open", ["c", "b"]),
            ("state=open&state=dead", ["d", "c", "b"]),
            ("tag=conversation", ["c"]),
            ("created_before=2000-01-01T00:00:00Z", []),
            ("created_after=2000-01-01T00:00:00Z", ["d", "c", "b", "a"]),
        ],
    )
    def test_filters(self, api, owner, query, expected):
        make_session(owner, session_id="a", state="sealed")
        make_session(owner, session_id="b", state="open")
        make_session(owner, session_id="c", state="open", tag="conversation")
        make_session(owner, session_id="d", state="dead")
        assert ids(api.get(f"/v1/sessions{USER}&{query}")) == expected

    @pytest.mark.parametrize("query", ["state=half", "tag=%00", "created_after=then", "user_id=%00"])
    def test_a_bad_filter_is_named(self, api, owner, query):
        response = api.get(f"/v1/sessions{USER}&{query}")
        assert response.status_code == 400
        assert list(response.json()) == [query.split("=")[0]]

    def test_omitted_the_list_is_of_the_whole_organization(self, api, session, client_row, stranger):
        make_session(make_owner(client_row.organization, client_row.default_user_id), session_id="mine")
        make_session(stranger, session_id="theirs")
        assert ids(api.get("/v1/sessions")) == ["mine", "s-1"]
        assert ids(api.get(f"/v1/sessions?user_id={client_row.default_user_id}")) == ["mine"]

    def test_the_user_is_compared_as_it_is_stored(self, api, owner):
        make_session(make_owner(owner.organization, "Ren\u00e9e"), session_id="hers")
        assert ids(api.get("/v1/sessions", {"user_id": "Rene\u0301e"})) == ["hers"]

    @pytest.mark.parametrize("user_id", ["nobody", "%ED%A0%80", "x" * 500])
    def test_an_unknown_user_has_none(self, api, session, user_id):
        response = api.get(f"/v1/sessions?user_id={user_id}")
        assert (response.status_code, ids(response)) == (200, [])

    def test_a_stranger_sees_none(self, stranger_api, session):
        assert ids(stranger_api.get("/v1/sessions")) == ids(stranger_api.get(f"/v1/sessions{USER}")) == []

    def test_as_many_queries_for_twenty_as_for_one(self, read_api, owner):
        make_session(owner)
        queries(read_api, f"/v1/sessions{USER}")
        one = queries(read_api, f"/v1/sessions{USER}")
        for _ in range(19):
            make_session(owner)
        assert queries(read_api, f"/v1/sessions{USER}") == one == 2


class TestOne:
    def test_by_its_id(self, read_api, session):
        row = read_api.get(f"/v1/sessions/s-1{USER}").json()
        assert (row["session_id"], row["turn_count"]) == ("s-1", 3)

    @pytest.mark.parametrize("path", ["", "/turns"])
    def test_missing_and_foreign_are_the_same_bytes(self, api, stranger_api, session, path):
        answers = [
            api.get(f"/v1/sessions/nope{path}{USER}"),
            api.get(f"/v1/sessions/s-1{path}?user_id=nobody"),
            api.get(f"/v1/sessions/s-1{path}"),
            api.get(f"/v1/sessions/%00{path}{USER}"),
            stranger_api.get(f"/v1/sessions/s-1{path}{USER}"),
        ]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, NOT_FOUND)}


class TestTurns:
    PATH = f"/v1/sessions/s-1/turns{USER}"

    def test_the_row(self, read_api, session, client_row):
        row = read_api.get(self.PATH).json()["results"][1]
        turn = ConversationMessage.objects.get(seq=2)
        assert row == {
            "id": f"convmsg-{turn.pk}",
            "seq": 2,
            "role": "assistant",
            "content": "[call pay] {}",
            "tool_calls": [{"id": "c1", "name": "pay"}],
            "tool_name": "",
            "tool_call_id": "",
            "is_error": False,
            "truncated": False,
            "message_id": "",
            "client_id": client_row.pk,
            "intake_id": None,
            "occurred_at": None,
            "created_at": row["created_at"],
        }

    def test_in_their_order_by_cursor(self, read_api, session):
        first = read_api.get(f"{self.PATH}&limit=2").json()
        second = read_api.get(first["next"]).json()
        assert [[row["seq"] for row in page["results"]] for page in (first, second)] == [[1, 2], [3]]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("role=tool", [3]),
            ("role=tool&role=user", [1, 3]),
            ("is_error=true", [3]),
            ("tool_name=pay", [3]),
            ("truncated=true", []),
        ],
    )
    def test_filters(self, read_api, session, query, expected):
        rows = read_api.get(f"{self.PATH}&{query}").json()["results"]
        assert [row["seq"] for row in rows] == expected

    def test_as_many_queries_for_twenty_as_for_one(self, read_api, owner, client_row):
        make_session(owner, TURNS[:1], client_row, session_id="s-1")
        make_session(owner, TURNS[:1] * 20, client_row, session_id="s-2")
        queries(read_api, self.PATH)
        one = queries(read_api, self.PATH)
        assert queries(read_api, self.PATH.replace("s-1", "s-2")) == one == 4


class TestClose:
    def test_it_seals(self, api, session):
        response = api.post(f"/v1/sessions/s-1/close{USER}")
        assert response.status_code == 200
        assert response.json()["state"] == "sealed"
        session.refresh_from_db()
        assert response.json()["closed_at"] == session.closed_at.isoformat().replace("+00:00", "Z")

    def test_the_user_may_stand_in_the_body(self, api, session):
        response = api.post("/v1/sessions/s-1/close", {"user_id": "alice"}, format="json")
        assert response.json()["state"] == "sealed"

    def test_what_still_waits_is_stored_first(self, api, owner):
        body = {"messages": [{"role": "user", "content": "hi"}], "session_id": "s-9", "user_id": "alice"}
        api.post("/memory/add", body, format="json")
        answer = api.post(f"/v1/sessions/s-9/close{USER}").json()
        assert (answer["state"], answer["turn_count"]) == ("sealed", 1)

    def test_an_unknown_field_is_refused(self, api, session):
        response = api.post(f"/v1/sessions/s-1/close{USER}", {"force": True}, format="json")
        assert (response.status_code, response.json()) == (400, {"force": ["Unknown field."]})
        session.refresh_from_db()
        assert session.state == "open"

    def test_a_read_only_key_may_not(self, read_api, session):
        assert read_api.post(f"/v1/sessions/s-1/close{USER}").status_code == 403
        session.refresh_from_db()
        assert session.state == "open"

    def test_missing_and_foreign_are_the_same_bytes_and_change_nothing(self, api, stranger_api, session):
        answers = [
            api.post(f"/v1/sessions/nope/close{USER}"),
            api.post("/v1/sessions/s-1/close"),
            api.post(f"/v1/sessions/%00/close{USER}"),
            stranger_api.post(f"/v1/sessions/s-1/close{USER}"),
        ]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, NOT_FOUND)}
        session.refresh_from_db()
        assert session.state == "open"


def test_closing_a_session_of_long_ago_says_when_it_was_closed(api, session):
    closed = datetime(2026, 1, 1, tzinfo=UTC)
    Session.objects.update(state="distilled", closed_at=closed)
    answer = api.post(f"/v1/sessions/s-1/close{USER}").json()
    assert (answer["state"], answer["closed_at"]) == ("distilled", "2026-01-01T00:00:00Z")


class TestRetry:
    @pytest.fixture
    def dead(self, session) -> Session:
        Session.objects.update(state="dead", attempts=5, last_error="No JSON.")
        session.refresh_from_db()
        return session

    def test_it_is_read_again(self, api, client_row, dead):
        response = api.post(f"/v1/sessions/s-1/retry{USER}")
        assert response.status_code == 200
        answer = response.json()
        assert (answer["state"], answer["attempts"], answer["last_error"]) == ("sealed", 0, "No JSON.")
        dead.refresh_from_db()
        assert dead.state == "sealed"
        event = AuditEvent.objects.get()
        assert (event.action, event.actor_name) == ("session.retried", client_row.name)
        assert AutoDreamRun.objects.get().state == "queued"

    def test_the_user_may_stand_in_the_body(self, api, dead):
        response = api.post("/v1/sessions/s-1/retry", {"user_id": "alice"}, format="json")
        assert response.json()["state"] == "sealed"

    def test_again_or_where_nothing_failed_it_is_answered_as_it_is(self, api, session):
        before = Session.objects.values().get()
        assert api.post(f"/v1/sessions/s-1/retry{USER}").json()["state"] == "open"
        assert Session.objects.values().get() == before
        assert not AuditEvent.objects.exists()

    def test_those_that_were_given_up_are_a_list(self, read_api, dead):
        rows = read_api.get("/v1/sessions?state=dead").json()["results"]
        assert [(row["session_id"], row["last_error"]) for row in rows] == [("s-1", "No JSON.")]

    def test_a_read_only_key_may_not(self, read_api, dead):
        assert read_api.post(f"/v1/sessions/s-1/retry{USER}").status_code == 403
        dead.refresh_from_db()
        assert dead.state == "dead"

    def test_missing_and_foreign_are_the_same_bytes_and_change_nothing(self, api, stranger_api, dead):
        answers = [
            api.post(f"/v1/sessions/nope/retry{USER}"),
            api.post("/v1/sessions/s-1/retry"),
            api.post(f"/v1/sessions/%00/retry{USER}"),
            stranger_api.post(f"/v1/sessions/s-1/retry{USER}"),
        ]
        assert {(answer.status_code, answer.content) for answer in answers} == {(404, NOT_FOUND)}
        dead.refresh_from_db()
        assert dead.state == "dead"
        assert not AuditEvent.objects.exists()
