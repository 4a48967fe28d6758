"""From the door of intake to lessons: nothing is learned before its time, and tags arrive with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import call_command

from conversations.intake import store_queued
from conversations.models import ConversationMessage, Session
from skills.models import DistillationAttempt, SkillExperience

pytestmark = pytest.mark.django_db

TAGS = {"project": "returns", "desk": ["air", "rail"]}


def call(number: int, **arguments: Any) -> dict[str, Any]:
    function = {"name": "refund_order", "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


FAILED_AND_FIXED = [
    {"role": "user", "content": "Refund order 4711, please."},
    call(1, order="4711", method="voucher"),
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "Error: orders paid by card are refunded to the card",
    },
    call(2, order="4711", method="card"),
    {"role": "tool", "tool_call_id": "c2", "content": '{"refunded": true}'},
]


@pytest.fixture
def post(api, owner):
    """Post as alice; what `/memory/add` queues is stored at once by hand."""

    def post(path: str, session_id: str, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
        body = {"user_id": "alice", "session_id": session_id, "messages": messages, **fields}
        response = api.post(path, body, format="json")
        assert response.status_code == 200, response.content
        if response.json()["status"] == "queued":
            store_queued(intake_id=response.json()["intake_id"])
        return response.json()

    return post


@pytest.fixture
def learn(owner, capsys):
    """Dream as an operator does; return the session ids that were distilled so far."""

    def learn() -> list[str]:
        whose = ("--organization", owner.organization.name, "--user", "alice")
        call_command("auto_dream", *whose, "--last-n-sessions", "50", "--json")
        capsys.readouterr()
        return sorted(DistillationAttempt.objects.values_list("session__session_id", flat=True))

    return learn


@pytest.mark.parametrize("path", ["/memory/add", "/memory/add_sync"])
def test_two_sessions_written_in_turn_are_each_learned_from_when_they_are_over(api, post, learn, path):
    for number in range(25):
        for session_id in ("one", "two"):
            text = f"{session_id}, number {number}"
            post(path, session_id, {"role": "user", "content": text}, {"role": "assistant", "content": text})
        if number % 8 == 7:  # while a session waits for its second turn, the newer one makes it look complete
            assert learn() == []
    for session in Session.objects.all():
        assert (session.state, session.turn_count) == ("open", 50)
        own = session.turns.order_by("seq").values_list("content", flat=True)
        assert list(own) == [f"{session.session_id}, number {n}" for n in range(25) for _ in range(2)]
    assert learn() == []

    assert api.post("/v1/sessions/one/close?user_id=alice").status_code == 200
    assert learn() == ["one"]

    post(path, "three", {"role": "user", "content": "something else"})
    assert learn() == ["one", "two"]
    assert ConversationMessage.objects.count() == 101


def test_tags_are_found_again_on_session_and_experiences(api, post, learn):
    post("/memory/add", "s-1", *FAILED_AND_FIXED, filter_tags=TAGS | {"session_id": "s-1"})
    assert Session.objects.get().filter_tags == TAGS | {"session_id": "s-1"}
    shown = api.get("/v1/sessions?user_id=alice").json()["results"]
    assert [session["filter_tags"] for session in shown] == [TAGS | {"session_id": "s-1"}]

    api.post("/v1/sessions/s-1/close?user_id=alice")
    assert learn() == ["s-1"]

    experiences = list(SkillExperience.objects.all())
    assert experiences
    assert {json.dumps(found.filter_tags, sort_keys=True) for found in experiences} == {
        json.dumps(TAGS | {"session_id": "s-1"}, sort_keys=True)
    }
    shown = api.get("/v1/experiences?user_id=alice").json()["results"]
    assert all(found["filter_tags"] == TAGS | {"session_id": "s-1"} for found in shown)


def test_a_conversation_is_never_learned_from(api, post, learn):
    post("/memory/add_sync", "talk", *FAILED_AND_FIXED, session_tag="conversation")
    api.post("/v1/sessions/talk/close?user_id=alice")
    assert learn() == []
    assert not SkillExperience.objects.exists()
