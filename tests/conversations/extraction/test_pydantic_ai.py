"""Pydantic AI's own messages, and words in fields that are not called content."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import call, reason, told


def request(*parts, **fields):
    return {"kind": "request", "parts": list(parts)} | fields


def response(*parts):
    return {"kind": "response", "parts": list(parts)}


def test_a_conversation():
    image = {"kind": "binary", "media_type": "image/png", "data": "AAAA"}
    link = {"kind": "document-url", "url": "https://e.org/a.pdf"}
    messages = [
        request(
            {"part_kind": "system-prompt", "content": "Be brief."},
            {"part_kind": "user-prompt", "content": ["Look:", image, link]},
        ),
        response(
            {"part_kind": "thinking", "content": "hm"},
            {"part_kind": "text", "content": "Looking."},
            {"part_kind": "tool-call", "tool_name": "f", "args": '{"a": 1}', "tool_call_id": "c1"},
            {"part_kind": "tool-call", "tool_name": "g", "args": {}, "tool_call_id": "c2"},
        ),
        request(
            {"part_kind": "tool-return", "tool_name": "g", "content": {"b": 2}, "tool_call_id": "c2"},
            {"part_kind": "retry-prompt", "tool_name": "f", "content": "no", "tool_call_id": "c1"},
            {"part_kind": "retry-prompt", "tool_name": None, "content": "Answer in words."},
        ),
    ]
    assert told(*messages) == [
        ("user", "Look:\n[image: image/png, 3 B]\n[document: https://e.org/a.pdf]"),
        ("assistant", 'Looking.\n[call f] {"a": 1}\n[call g] {}'),
        ("tool", '[g] {"b": 2}'),
        ("error", "[f] no"),
        ("user", "Answer in words."),
    ]
    assert extract(messages).omitted == {"system": 1, "reasoning": 1}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (request({"part_kind": "system-prompt", "content": "Be brief."}), "system message"),
        (response(), "empty message"),
        (response({"part_kind": "hologram"}, 5), "unknown content: “hologram”, “part without a kind”"),
    ],
)
def test_no_turn(message, expected):
    assert reason(message).startswith(expected)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "text": "hello"}, ("user", "hello")),
        ({"role": "user", "message": "hello"}, ("user", "hello")),
        (
            {"role": "user", "content": None, "blocks": [{"block_type": "text", "text": "hello"}]},
            ("user", "hello"),
        ),
        ({"role": "CHATBOT", "message": "hello"}, ("assistant", "hello")),
        (
            {"role": "user", "content": [{"type": "input_audio", "transcript": "hello", "audio": "AAAA"}]},
            ("user", "hello"),
        ),
        ({"role": "tool", "toolName": "f", "toolCallId": "c", "content": "done"}, ("tool", "[f] done")),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "parameters": {"a": 1}}]},
            ("assistant", '[call f] {"a": 1}'),
        ),
        (
            {"role": "assistant", "content": [{"type": "tool_call", "name": "f", "args": {"a": 1}}]},
            ("assistant", '[call f] {"a": 1}'),
        ),
        ({"role": "tool", "name": "f", "output": "done"}, ("tool", "[f] done")),
        ({"role": "tool", "name": "f", "result": {"a": 1}}, ("tool", '[f] {"a": 1}')),
        (
            {"role": "assistant", "content": None, "additional_kwargs": {"tool_calls": [call("f", "{}")]}},
            ("assistant", "[call f] {}"),
        ),
    ],
)
def test_other_names_of_content(message, expected):
    assert told(message) == [expected]


def test_words_in_unknown_fields_are_reported_and_not_called_empty():
    message = {"role": "user", "utterance": "Where is my order?", "lang": "en", "id": "m 1"}
    skipped = extract([message]).skipped[0]
    assert skipped.reason == "expected “content”, got only “utterance” beside “role”"
    assert skipped.unreadable
