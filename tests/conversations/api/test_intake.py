"""GET /v1/intake…: the ledger of accepted requests."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import storage
from conversations.envelope import checked
from conversations.intake import accept, store_queued
from conversations.models import IntakeRecord
from tests.factories import make_intake, make_owner

USER = "?user_id=alice"
NOT_FOUND = b'{"detail":"Not found."}'
HELLO = {"role": "user", "content": "hello"}


@pytest.fixture
def add(owner, client_row):
    def add(*messages: Any, session_id: str = "s-1", wait: bool = True) -> IntakeRecord:
        envelope = checked(messages=list(messages) or [HELLO], session_id=session_id)
        return accept(client=client_row, owner=owner, envelope=envelope, wait=wait).record

    return add


def ids(response: Any) -> list[str]:
    return [row["id"] for row in response.json()["results"]]


def test_a_queued_request_and_what_became_of_it(api, add, client_row):
    record = add({"role": "system", "content": "x"}, HELLO, wait=False)
    row = api.get(f"/v1/intake/{record.pk}").json()
    assert row == {
        "id": record.pk,
        "user_id": "alice",
        "client_id": client_row.pk,
        "session_id": "s-1",
        "session_tag": "",
        "filter_tags": {},
        "history": "",
        "occurred_at": None,
        "message_count": 2,
        "state": "queued",
        "turns": None,
        "error": "",
        "created_at": row["created_at"],
        "stored_at": None,
        "body_pruned_at": None,
    }
    store_queued(intake_id=record.pk)
    after = api.get(f"/v1/intake/{record.pk}").json()
    assert (after["state"], after["turns"]) == (
        "stored",
        {
            "stored": 1,
            "truncated": 0,
            "duplicate": 0,
            "skipped": [{"index": 0, "reason": "system message"}],
            "omitted": {},
            "roles": {"user": 1},
        },
    )


def test_a_failed_request_says_why_without_the_details(api, add, monkeypatch):
    monkeypatch.setattr(storage, "_rows", lambda *args: 1 / 0)
    record = add()
    row = api.get(f"/v1/intake/{record.pk}").json()
    assert (row["state"], row["error"]) == ("failed", "storing the turns failed (ZeroDivisionError)")


def test_newest_first_with_filters(api, add):
    first, second = add(), add(session_id="s-2", wait=False)
    assert ids(api.get(f"/v1/intake{USER}")) == [second.pk, first.pk]
    assert ids(api.get(f"/v1/intake{USER}&state=queued")) == [second.pk]
    assert ids(api.get(f"/v1/intake{USER}&session_id=s-1")) == [first.pk]
    assert ids(api.get(f"/v1/intake{USER}&client_id=client-nope")) == []
    assert ids(api.get(f"/v1/intake{USER}&created_before=2000-01-01T00:00:00Z")) == []
    assert api.get(f"/v1/intake{USER}&state=lost").status_code == 400


def test_the_list_is_of_the_whole_organization_unless_a_user_is_named(api, add, client_row, stranger):
    record = add()
    mine = make_intake(make_owner(client_row.organization, client_row.default_user_id), client_row)
    make_intake(stranger)
    assert ids(api.get("/v1/intake")) == [mine.pk, record.pk]
    assert ids(api.get(f"/v1/intake{USER}")) == [record.pk]
    assert ids(api.get("/v1/intake?user_id=nobody")) == []


def test_missing_and_foreign_are_the_same_bytes(api, stranger_api, add):
    record = add()
    answers = [
        api.get("/v1/intake/intake-nope"),
        api.get("/v1/intake/%00"),
        stranger_api.get(f"/v1/intake/{record.pk}"),
    ]
    assert {(answer.status_code, answer.content) for answer in answers} == {(404, NOT_FOUND)}
    assert ids(stranger_api.get("/v1/intake")) == ids(stranger_api.get(f"/v1/intake{USER}")) == []


def test_without_a_key(client, db):
    assert client.get("/v1/intake").status_code == 401


def test_as_many_queries_for_twenty_as_for_one(read_api, add):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert read_api.get(f"/v1/intake{USER}").status_code == 200
        return len(captured)

    add()
    queries()
    one = queries()
    for _ in range(19):
        add()
    assert queries() == one == 2
