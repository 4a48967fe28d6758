"""Secrets are taken out before anything is stored, where the installation or the organization wants that."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import storage
from conversations.intake import KeyReused, replay, store_queued
from conversations.models import ConversationMessage, IntakeRecord
from mirix.tenants.models import OrganizationSettings

pytestmark = pytest.mark.django_db

KEY = "sk-proj-a1b2c3d4e5f6a7b8c9d0"
ASKED = {"role": "user", "content": f"Use the key {KEY} for it."}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {
                "name": "login",
                "arguments": json.dumps({"user": "mia", "password": "correct horse"}),
            },
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "postgres://app:s3cret@db/app is open"}
SECRETS = (KEY, "correct horse", "s3cret")


@pytest.fixture
def on(settings):
    settings.MIRIX_REDACT_ON_INTAKE = True


def stored() -> str:
    """All that the database holds of requests and turns."""
    return json.dumps(
        [list(IntakeRecord.objects.values()), list(ConversationMessage.objects.values())], default=str
    )


def test_nothing_is_taken_out_unless_it_is_wanted(add):
    add(ASKED, CALL, RESULT)
    assert all(secret in stored() for secret in SECRETS)


def test_turns_hold_markers_in_their_place(add, on):
    accepted = add(ASKED, CALL, RESULT)

    assert accepted.answer["turns"]["stored"] == 3
    asked, call, result = ConversationMessage.objects.order_by("seq")
    assert asked.content == "Use the key [redacted: api key] for it."
    assert call.content == '[call login] {"user": "mia", "password": "[redacted: secret]"}'
    assert call.tool_calls[0]["arguments"] == {"user": "mia", "password": "[redacted: secret]"}
    assert result.content == "[login] postgres://app:[redacted: password]@db/app is open"
    assert not any(secret in stored() for secret in SECRETS)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize(
    ("chosen", "installed", "redacted"),
    [(True, False, True), (False, True, False), (None, True, True), (None, False, False)],
)
def test_what_the_organization_chose_counts_before_the_installation(
    add, owner, settings, chosen, installed, redacted, wait
):
    settings.MIRIX_REDACT_ON_INTAKE = installed
    OrganizationSettings.objects.create(organization=owner.organization, redact_on_intake=chosen)
    record = add(ASKED, wait=wait).record
    assert (KEY not in stored()) is redacted
    if not wait:
        store_queued(intake_id=record.pk)
    assert ConversationMessage.objects.count() == 1
    assert (KEY not in stored()) is redacted


def test_the_choice_of_another_organization_does_not_count(add, stranger):
    OrganizationSettings.objects.create(organization=stranger.organization, redact_on_intake=True)
    add(ASKED)
    assert KEY in stored()


def test_the_body_that_waits_for_the_worker_holds_none(add, on):
    record = add(ASKED, CALL, RESULT, wait=False).record
    assert record.body is not None
    assert not any(secret in stored() for secret in SECRETS)

    store_queued(intake_id=record.pk)

    assert [turn.seq for turn in ConversationMessage.objects.order_by("seq")] == [1, 2, 3]
    assert not any(secret in stored() for secret in SECRETS)


def test_a_body_that_was_kept_from_before_is_redacted_when_it_is_stored(add, settings):
    record = add(ASKED, CALL, RESULT, wait=False).record
    assert KEY in stored()

    settings.MIRIX_REDACT_ON_INTAKE = True
    store_queued(intake_id=record.pk)

    assert ConversationMessage.objects.count() == 3
    assert not any(secret in stored() for secret in SECRETS)


def test_the_body_of_what_could_not_be_stored_holds_none(add, on, monkeypatch):
    def broken(*args, **kwargs):
        raise ValueError("no")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "extract", broken)
        record = add(ASKED, CALL, RESULT).record
    assert record.state == "failed"
    assert record.body is not None
    assert not any(secret in stored() for secret in SECRETS)

    replay(record=record)

    assert ConversationMessage.objects.count() == 3


def test_the_body_of_what_nobody_could_read_holds_none(add, on):
    record = add(ASKED, {"kind": "riddle", "password": "correct horse"}, RESULT).record
    assert record.state == "partial"
    assert record.body is not None
    assert not any(secret in stored() for secret in SECRETS)


def test_requests_are_told_apart_by_what_came(add, on):
    first = add(ASKED, key="k-1")
    assert add(ASKED, key="k-1").is_replay
    other = {"role": "user", "content": ASKED["content"].replace("a1b2", "z9y8")}
    with pytest.raises(KeyReused):
        add(other, key="k-1")
    assert first.record.pk == IntakeRecord.objects.get().pk


def test_a_history_that_is_told_again_is_known_again(add, on):
    add(ASKED, CALL)
    accepted = add(ASKED, CALL, RESULT)
    assert (accepted.answer["turns"]["stored"], accepted.answer["turns"]["duplicate"]) == (1, 2)


@pytest.mark.parametrize("path", ["/memory/add_sync", "/memory/add"])
def test_it_asks_the_database_nothing_more(api, settings, path):
    def queries(session_id: str) -> int:
        body = {"messages": [ASKED], "session_id": session_id}
        with CaptureQueriesContext(connection) as caught:
            assert api.post(path, body, format="json").status_code == 200
        return len(caught)

    queries("s-0")
    off = queries("s-1")
    settings.MIRIX_REDACT_ON_INTAKE = True
    assert queries("s-2") == off
