"""POST /memory/add and /memory/add_sync: exact answers; wrong input is named and writes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from conversations import storage
from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.strict_json import loads
from mirix.tenants.models import EndUser
from tests.conversations.extraction.test_properties import JSON, MESSAGES, SIBLING

HELLO = {"role": "user", "content": "hello"}
BODY = {"messages": [HELLO], "session_id": "s-1", "user_id": "alice"}
ROUTES = ["/memory/add", "/memory/add_sync"]


def post(api: APIClient, path: str, body: Any, **headers: str) -> Any:
    return api.post(path, body, format="json", headers=headers)


def nothing_written() -> bool:
    return not (
        IntakeRecord.objects.exists()
        or Session.objects.exists()
        or ProcrastinateJob.objects.exists()
        or EndUser.objects.exclude(user_id="alice").exists()
    )


class TestAnswers:
    def test_add_sync_tells_what_became_of_every_message(self, api, owner):
        body = BODY | {"messages": [{"role": "system", "content": "be brief"}, HELLO]}
        response = post(api, "/memory/add_sync", body)
        assert response.status_code == 200
        record = IntakeRecord.objects.get()
        assert response.json() == {
            "success": True,
            "message": "Accepted. 1 turn stored.",
            "status": "processed",
            "message_count": 2,
            "intake_id": record.pk,
            "session": {"session_id": "s-1", "state": "open", "turn_count": 1},
            "turns": {
                "stored": 1,
                "truncated": 0,
                "duplicate": 0,
                "skipped": [{"index": 0, "reason": "system message"}],
                "omitted": {},
                "roles": {"user": 1},
            },
        }
        assert record.end_user == owner.end_user

    def test_add_tells_that_the_request_is_kept(self, api):
        response = post(api, "/memory/add", BODY)
        assert response.status_code == 200
        assert response.json() == {
            "success": True,
            "message": "Accepted. The turns are stored by the worker.",
            "status": "queued",
            "message_count": 1,
            "intake_id": IntakeRecord.objects.get().pk,
            "session": {"session_id": "s-1", "state": "open", "turn_count": 0},
            "turns": None,
        }
        assert ProcrastinateJob.objects.count() == 1

    @pytest.mark.parametrize("path", ROUTES)
    def test_without_session_id(self, api, path):
        answer = post(api, path, {"messages": [HELLO]}).json()
        assert answer["session"] is None
        assert answer["message"] == "Accepted. Without session_id nothing is learned from it."
        assert not Session.objects.exists()

    def test_missed_is_a_success_with_a_reason(self, api, monkeypatch):
        monkeypatch.setattr(storage, "_rows", lambda *args: 1 / 0)
        response = post(api, "/memory/add_sync", BODY)
        assert response.status_code == 200
        assert response.json()["success"] is True
        assert response.json()["turns"] is None
        assert response.json()["session"] == {
            "session_id": "s-1",
            "state": "missed",
            "reason": "storing the turns failed (ZeroDivisionError)",
        }

    @pytest.mark.parametrize("path", ROUTES)
    def test_fields_of_the_original_are_accepted(self, api, path):
        ignored = {
            "meta_agent_id": "agent-1",
            "chaining": True,
            "verbose": False,
            "use_cache": None,
            "block_filter_tags": {"a": 1},
            "block_filter_tags_update_mode": "merge",
            "occurred_at": "2026-03-01T12:00:00+01:00",
            "filter_tags": {"project": "x", "session_id": "s-1"},
            "session_tag": "conversation",
            "history": "delta",
        }
        assert post(api, path, BODY | ignored).status_code == 200

    @pytest.mark.parametrize("path", ROUTES)
    def test_null_is_as_good_as_omitted(self, api, path):
        optional = ("session_id", "user_id", "session_tag", "filter_tags", "occurred_at", "history")
        assert post(api, path, {"messages": [HELLO]} | dict.fromkeys(optional)).status_code == 200


class TestWhoseMemory:
    def test_the_end_user_is_made_on_first_use(self, api, owner):
        post(api, "/memory/add_sync", BODY | {"user_id": "new"})
        end_user = EndUser.objects.get(user_id="new")
        assert end_user.organization == owner.organization
        assert Session.objects.get().end_user == end_user

    def test_omitted_it_is_the_default_end_user_of_the_client(self, api, client_row):
        post(api, "/memory/add_sync", {"messages": [HELLO], "session_id": "s-1"})
        assert Session.objects.get().end_user.user_id == client_row.default_user_id

    def test_it_may_stand_in_the_query(self, api, owner):
        post(api, "/memory/add_sync?user_id=alice", {"messages": [HELLO], "session_id": "s-1"})
        assert Session.objects.get().end_user == owner.end_user

    def test_query_and_body_must_agree(self, api):
        response = post(api, "/memory/add_sync?user_id=bob", BODY)
        assert response.status_code == 400
        assert response.json() == {"user_id": ["The query and the body name different users."]}
        assert nothing_written()

    def test_a_stranger_writes_into_its_own_organization(self, api, stranger_api, owner, stranger):
        post(api, "/memory/add_sync", BODY)
        post(stranger_api, "/memory/add_sync", BODY)
        assert {session.organization for session in Session.objects.all()} == {
            owner.organization,
            stranger.organization,
        }
        assert set(Session.objects.values_list("turn_count", flat=True)) == {1}


class TestRefusals:
    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize(
        ("change", "field", "problem"),
        [
            ({"messages": ...}, "messages", "This field is required."),
            ({"messages": None}, "messages", "This field may not be null."),
            ({"messages": "hi"}, "messages", "Must be a list of messages, not a string."),
            ({"messages": HELLO}, "messages", "Must be a list of messages, not an object."),
            ({"messages": []}, "messages", "May not be empty."),
            ({"messages": [1] * 10_001}, "messages", "May hold at most 10000 messages; this has 10001."),
            *(
                (
                    {"session_id": bad},
                    "session_id",
                    "May have 1 to 64 letters, digits, hyphens and underscores.",
                )
                for bad in ("", " ", "a b", "a" * 65, "s-1\n", "s\x001", "\ud800", "ä", 5, True, ["s"], {})
            ),
            ({"filter_tags": "x"}, "filter_tags", "Must be an object, not a string."),
            ({"filter_tags": [1]}, "filter_tags", "Must be an object, not a list."),
            (
                {"filter_tags": {"session_id": "s-2"}},
                "filter_tags",
                "filter_tags.session_id must equal session_id.",
            ),
            ({"filter_tags": {"a": "x" * 20_000}}, "filter_tags", None),
            ({"occurred_at": "yesterday"}, "occurred_at", None),
            ({"occurred_at": 5}, "occurred_at", None),
            ({"occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at", None),
            ({"session_tag": "chat"}, "session_tag", "Must be task or conversation."),
            ({"session_tag": "\ud800"}, "session_tag", "Must be task or conversation."),
            ({"session_tag": []}, "session_tag", "Must be task or conversation."),
            ({"history": "half"}, "history", "Must be delta or full."),
            ({"user_id": ""}, "user_id", None),
            ({"user_id": "x" * 257}, "user_id", None),
            ({"user_id": {}}, "user_id", None),
            ({"user_id": "\x00"}, "user_id", None),
            ({"user_id": "\ud800"}, "user_id", None),
            ({"sessionid": "s-1"}, "sessionid", "Unknown field."),
            ({"\ud800": "s-1"}, "\ufffd", "Unknown field."),
        ],
    )
    def test_a_bad_field_is_named_and_nothing_is_written(self, api, path, change, field, problem):
        body = {key: value for key, value in (BODY | change).items() if value is not ...}
        response = api.post(path, json.dumps(body), content_type="application/json")
        assert response.status_code == 400
        assert list(response.json()) == [field]
        assert problem is None or response.json()[field] == [problem]
        assert nothing_written()

    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize("body", ["{", "", "[]", '"x"', "null", '{"messages": NaN}', "\xff"])
    def test_a_body_that_is_no_json_object(self, api, path, body):
        response = api.post(path, body.encode("latin-1"), content_type="application/json")
        assert response.status_code == 400
        assert list(response.json()) in (["detail"], ["messages"])
        assert nothing_written()

    def test_json_nested_too_deeply(self, api):
        body = '{"messages": ' + "[" * 5_000 + "]" * 5_000 + "}"
        response = api.post("/memory/add_sync", body, content_type="application/json")
        assert response.status_code == 400
        assert list(response.json()) == ["detail"]

    @pytest.mark.parametrize("path", ROUTES)
    def test_a_read_only_key_is_refused_before_anything_is_written(self, read_api, path):
        assert post(read_api, path, BODY | {"user_id": "new"}).status_code == 403
        assert nothing_written()

    @pytest.mark.parametrize("path", ROUTES)
    @pytest.mark.parametrize("key", [None, "mx_unknown"])
    def test_no_or_an_unknown_key(self, db, path, key):
        assert post(APIClient(headers={"X-API-Key": key} if key else {}), path, BODY).status_code == 401
        assert nothing_written()

    @pytest.mark.parametrize("path", ROUTES)
    def test_get_is_not_a_method(self, api, path):
        assert api.get(path).status_code == 405


class TestIdempotency:
    @pytest.mark.parametrize("path", ROUTES)
    def test_the_same_request_again_gets_the_same_answer(self, api, path):
        first = post(api, path, BODY, **{"Idempotency-Key": "k-1"})
        again = post(api, path, BODY, **{"Idempotency-Key": "k-1"})
        assert (again.status_code, again.json()) == (200, first.json())
        assert IntakeRecord.objects.count() == 1

    def test_another_request_under_the_key_is_a_conflict(self, api):
        post(api, "/memory/add_sync", BODY, **{"Idempotency-Key": "k-1"})
        response = post(api, "/memory/add_sync", BODY | {"session_id": "s-2"}, **{"Idempotency-Key": "k-1"})
        assert response.status_code == 409
        assert response.json() == {"detail": "Idempotency-Key was used for another request."}
        assert IntakeRecord.objects.count() == 1

    def test_a_key_that_is_too_long(self, api):
        response = post(api, "/memory/add_sync", BODY, **{"Idempotency-Key": "k" * 256})
        assert response.status_code == 400
        assert list(response.json()) == ["Idempotency-Key"]
        assert nothing_written()


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=st.lists(MESSAGES | JSON, max_size=4), position=st.integers(0, 4))
def test_no_messages_whatsoever_give_a_5xx_or_cost_a_sibling(api, messages, position):
    messages.insert(position, SIBLING)
    body = {"messages": messages, "session_id": "s-1", "history": "delta"}
    before = ConversationMessage.objects.filter(content=SIBLING["content"]).count()
    try:
        encoded = json.dumps(body, allow_nan=False)
        loads(encoded)
    except ValueError:
        return  # NaN, infinities and keys that become one are no JSON
    response = api.post("/memory/add_sync", encoded, content_type="application/json")
    assert response.status_code == 200, response.content
    assert response.json()["session"]["state"] == "open"
    assert ConversationMessage.objects.filter(content=SIBLING["content"]).count() == before + 1
