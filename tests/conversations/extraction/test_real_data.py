"""Real transcripts in the OpenAI chat shape: every message is a turn or has a named reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conversations.extraction import extract
from tests.data import records

SYSTEM = "system message"
EMPTY = "empty message"
FILES = {
    "traj/tau_airline_dev.jsonl": {"user": 309, "assistant": 557, "tool": 288, SYSTEM: 40},
    "traj/sweagent_toolcalls_raw.jsonl": {"user": 4, "assistant": 31, "tool": 31, SYSTEM: 4},
    "traj/mini_swe_agent.jsonl": {"user": 13, "assistant": 12, SYSTEM: 2, EMPTY: 1},
    "traj/toolbench_function_role.jsonl": {"user": 20, "assistant": 52, "tool": 37, SYSTEM: 13},
    "traj/alfworld_fewshot_rollouts.jsonl": {"user": 26, "assistant": 187, "tool": 161},
    "odd/pydantic_ai_openai_chat_conversations.jsonl": {
        "user": 116,
        "assistant": 114,
        "tool": 120,
        SYSTEM: 13,
    },
    "odd/mistral_common_samples.jsonl": {"user": 20, "assistant": 24, "tool": 11, SYSTEM: 4},
}


def messages_of(record: dict[str, Any]) -> list[Any]:
    return record.get("messages") or record["sample"]["messages"]


@pytest.mark.parametrize("name", FILES)
def test_every_message_is_a_turn_or_has_its_reason(name):
    counts: Counter[str] = Counter()
    for record in records(name):
        messages = messages_of(record)
        extraction = extract(messages)
        told = [turn.index for turn in extraction.turns] + [item.index for item in extraction.skipped]
        assert sorted(told) == list(range(len(messages)))
        counts.update(turn.role for turn in extraction.turns)
        counts.update(item.reason for item in extraction.skipped)
    assert counts == FILES[name]


@pytest.mark.parametrize("name", FILES)
def test_every_result_of_a_tool_has_the_name_of_its_tool(name):
    for record in records(name):
        for turn in extract(messages_of(record)).turns:
            if turn.role == "tool":
                assert turn.tool_name
                assert turn.content.startswith(f"[{turn.tool_name}] ")


@pytest.mark.parametrize("name", FILES)
def test_no_turn_holds_base64_of_a_part(name):
    for record in records(name):
        for turn in extract(messages_of(record)).turns:
            assert ";base64," not in turn.content


def test_the_errors_of_the_airline_desk():
    errors = [
        [turn.content for turn in extract(record["messages"]).turns if turn.is_error]
        for record in records("traj/tau_airline_dev.jsonl")
    ]
    assert sum(len(of_session) for of_session in errors) == 35
    assert sum(1 for of_session in errors if of_session) == 13
    assert all(" Error: " in content[:60] for of_session in errors for content in of_session)


def test_a_call_id_that_the_airline_desk_uses_twice_names_the_latest_tool():
    repeated = 0
    for record in records("traj/tau_airline_dev.jsonl"):
        given = [message.get("name") for message in record["messages"] if message["role"] == "tool"]
        nameless = [
            {key: value for key, value in message.items() if key != "name"} for message in record["messages"]
        ]
        resolved = [turn.tool_name for turn in extract(nameless).turns if turn.role == "tool"]
        assert resolved == given
        ids = [message["tool_call_id"] for message in record["messages"] if message["role"] == "tool"]
        repeated += len(ids) - len(set(ids))
    assert repeated == 24


def test_the_errors_of_the_legacy_shape():
    errors = [
        turn.tool_name
        for record in records("traj/toolbench_function_role.jsonl")
        for turn in extract(record["messages"]).turns
        if turn.is_error
    ]
    assert len(errors) == 6
