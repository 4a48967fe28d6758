"""Whole replies of providers as elements: the messages inside, or why there is none."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import call, reason, told

HELLO = {"role": "assistant", "content": "Hello."}
SAID = [("assistant", "Hello.")]


@pytest.mark.parametrize(
    "reply",
    [
        {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": HELLO}]},
        {"choices": [{"delta": {"content": "Hello."}}]},
        {"choices": [{"text": "Hello.", "index": 0}]},
        {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hello."}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]},
        {"object": "response", "output": [{"type": "message", "role": "assistant", "content": "Hello."}]},
        {"model": "llama", "message": HELLO, "done": True},
        {"output": {"message": HELLO}},
        {"status": 200, "headers": {}, "body": "Hello."},
        {"status": 200, "headers": {}, "body": {"choices": [{"message": HELLO}]}},
        {"task": "transcribe", "language": "english", "text": "Hello."},
    ],
)
def test_what_was_said(reply):
    assert told(reply) == SAID


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"error": {"message": "quota", "type": "insufficient_quota"}}, "error reply of a provider"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, "error reply of a provider"),
        ({"choices": []}, "error reply of a provider"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "error reply of a provider"),
        ({"object": "list", "data": [{"object": "embedding", "embedding": [0.1]}]}, "embedding only"),
        (
            {"choices": [{"message": {"role": "assistant", "content": None, "reasoning": "hm"}}]},
            "reasoning only",
        ),
    ],
)
def test_why_there_is_no_turn(reply, expected):
    assert reason(reply) == expected


def test_the_items_of_a_reply_are_turns_in_order_and_its_instructions_are_counted():
    reply = {
        "object": "response",
        "instructions": "Be brief.",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "hologram"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
        ],
    }
    assert told(reply) == [("assistant", "[call f] {}"), *SAID]
    assert extract([reply]).omitted == {"system": 1, "reasoning": 1, "unreadable": 1}


def test_of_alternatives_the_first_is_read_and_the_others_are_counted():
    reply = {"choices": [{"message": HELLO}, {"message": HELLO | {"content": "Hi."}}]}
    assert told(reply) == SAID
    assert extract([reply]).omitted == {"alternative reply": 1}


def test_calls_in_a_reply_are_known_to_the_results_after_it():
    reply = {
        "choices": [
            {"message": {"role": "assistant", "content": None, "tool_calls": [call("f", "{}", "c1")]}}
        ]
    }
    result = {"role": "tool", "tool_call_id": "c1", "content": "done"}
    assert told(reply, result) == [("assistant", "[call f] {}"), ("tool", "[f] done")]


def test_tools_that_the_provider_ran_before_it_spoke():
    executed = [{"type": "search", "arguments": '{"q": 1}', "output": "3 hits"}]
    assert told(HELLO | {"executed_tools": executed}) == [
        ("assistant", '[call search] {"q": 1}'),
        ("tool", "[search] 3 hits"),
        *SAID,
    ]


def test_generated_images():
    reply = {"created": 1, "data": [{"b64_json": "AAAA", "revised_prompt": "A cat"}]}
    assert told(reply) == [("assistant", "[image: A cat, 3 B]")]
