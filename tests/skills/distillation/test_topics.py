"""What a model's lesson is about, from what the model says it is."""

from __future__ import annotations

import pytest

from skills.distillation.topics import tools_of, topic_of
from tests.skills.distillation import sessions

TOOLS = ["cancel_reservation", "getUserById", "mcp__github__create_issue"]


@pytest.mark.parametrize(
    ("claimed", "topic"),
    [
        ("tool:cancel_reservation", "tool:cancel_reservation"),
        ("Tool: `cancel_reservation`", "tool:cancel_reservation"),
        ("tool: Cancel Reservation", "tool:cancel_reservation"),
        ("cancel_reservation", "tool:cancel_reservation"),
        ("function:functions.cancel_reservation", "tool:cancel_reservation"),
        ("tool:get_user_by_id", "tool:getUserById"),
        ("tool:mcp__github__create_issue", "tool:mcp__github__create_issue"),
        ("tool:send_money", "task:send-money"),
        ("task:change-booking", "task:change-booking"),
        ("task:Change a booking!", "task:change-booking"),
        ("Task:cancel_reservation", "task:cancel-reservation"),
        ("refund of a cancelled trip", "task:refund-cancelled-trip"),
        ("", "task:ask-fare-class-first"),
        ("task:general", "task:ask-fare-class-first"),
        ("tool:", "task:ask-fare-class-first"),
        ("::", "task:ask-fare-class-first"),
    ],
)
def test_a_topic_is_a_tool_of_the_session_or_a_task(claimed, topic):
    assert topic_of(claimed, title="Ask for the fare class first", tool="", tools=TOOLS) == topic


def test_where_the_claim_says_nothing_the_tool_of_the_evidence_is_the_topic():
    assert topic_of("misc", title="Ask first", tool="getUserById", tools=TOOLS) == "tool:getUserById"


def test_a_task_without_latin_letters_has_no_slug():
    assert topic_of("task:取消预订", title="先询问舱位", tool="", tools=[]) == ""


def test_a_long_task_is_cut_at_a_word():
    topic = topic_of("task:" + "reconciliation " * 30, title="", tool="", tools=[])
    assert topic == "task:reconciliation-reconciliation-reconciliation"


def test_the_tools_of_a_session_are_those_it_called_and_those_that_answered():
    turns = sessions.turns(
        sessions.tool("search", {"q": "x"}, "found"),
        sessions.tool("search", {"q": "y"}, "found"),
        sessions.tool("book", {}, "Error: full"),
    )
    assert tools_of(turns) == ["search", "book"]
