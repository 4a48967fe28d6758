"""Real transcripts and real messages of many providers: each message is a turn or has a named reason.

Whether a message holds something to read is found out by `words`, which knows no shape.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conversations.extraction import extract
from conversations.extraction.reading import EXPECTED
from tests.conversations.extraction.words import is_told, readable
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
    "odd/pydantic_ai_message_shapes.jsonl": {
        "user": 73,
        "assistant": 148,
        "tool": 97,
        SYSTEM: 7,
        "developer message": 3,
        "reasoning only": 4,
        "compact summary only": 1,
        "tool list only": 1,
    },
    "odd/vercel_ai_responses.jsonl": {
        "assistant": 171,
        "tool": 100,
        EMPTY: 1,
        "embedding only": 1,
        "error reply of a provider": 5,
        EXPECTED: 3,
    },
}
SINGLE = ("odd/pydantic_ai_message_shapes.jsonl", "odd/vercel_ai_responses.jsonl")
OMITTED = {
    "odd/pydantic_ai_openai_chat_conversations.jsonl": {"reasoning": 7},
    "odd/pydantic_ai_message_shapes.jsonl": {"reasoning": 49, "notice": 5, "compact summary": 1},
    "odd/vercel_ai_responses.jsonl": {"reasoning": 44, "tool list": 5, "compact summary": 2, "notice": 1},
}
NOT_READ: dict[str, dict[str, int]] = {
    "odd/vercel_ai_responses.jsonl": {"error reply of a provider": 5, EXPECTED: 3},
}
# What a tool was called with stands here again as the command line that was made of it.
REPEATED = {"traj/sweagent_toolcalls_raw.jsonl": ("action",)}


def messages_of(record: dict[str, Any]) -> list[Any]:
    """The messages of a session; what was recorded by itself is a session of one."""
    for field in ("message", "response"):
        if field in record:
            return [record[field]]
    return record.get("messages") or record["sample"]["messages"]


@pytest.mark.parametrize("name", FILES)
def test_every_message_is_a_turn_or_has_its_reason(name):
    counts: Counter[str] = Counter()
    omitted: Counter[str] = Counter()
    for record in records(name):
        messages = messages_of(record)
        extraction = extract(messages)
        told = {turn.index for turn in extraction.turns}
        assert sorted([*told, *(item.index for item in extraction.skipped)]) == list(range(len(messages)))
        counts.update(turn.role for turn in extraction.turns)
        counts.update(item.reason.split(", got")[0] for item in extraction.skipped)
        omitted.update(extraction.omitted)
    assert counts == FILES[name]
    assert omitted == OMITTED.get(name, {})


@pytest.mark.parametrize("name", FILES)
def test_every_word_for_a_person_to_read_is_in_a_turn(name):
    not_read: Counter[str] = Counter()
    for record in records(name):
        for message in messages_of(record):
            extraction = extract([message])
            turns = "\n".join(turn.content for turn in extraction.turns)
            texts = list(readable(message, leaving=REPEATED.get(name, ())))
            if texts and not turns:
                not_read[extraction.skipped[0].reason.split(", got")[0]] += 1
            else:
                assert [text for text in texts if not is_told(text, turns)] == []
    assert not_read == NOT_READ.get(name, {})


@pytest.mark.parametrize("name", [name for name in FILES if name not in SINGLE])
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
