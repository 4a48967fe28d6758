"""Gemini's contents: the exact turns of one element."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason, told


def content(*parts, role="model"):
    return {"role": role, "parts": list(parts)}


class TestParts:
    def test_text_calls_and_thoughts(self):
        message = content(
            {"text": "I should look.", "thought": True},
            {"text": "Looking.", "thoughtSignature": "E"},
            {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "E"},
        )
        assert told(message) == [("assistant", 'Looking.\n[call f] {"a": 1}')]
        assert extract([message]).omitted == {"reasoning": 1}

    def test_responses_in_one_message_are_turns_of_their_own_and_find_their_calls_by_name(self):
        calls = content(
            {"functionCall": {"id": "c1", "name": "f", "args": {}}},
            {"functionCall": {"id": "c2", "name": "g", "args": {}}},
        )
        answers = content(
            {"functionResponse": {"name": "g", "response": {"result": "two"}}},
            {"functionResponse": {"name": "f", "response": {"error": "one"}}},
            role="user",
        )
        turns = extract([calls, answers]).turns[1:]
        assert [(turn.content, turn.tool_call_id, turn.is_error) for turn in turns] == [
            ("[g] two", "c2", False),
            ("[f] one", "c1", True),
        ]

    def test_the_other_spelling(self):
        call = content({"function_call": {"name": "f", "args": {}}, "thought_signature": "E"})
        answer = content({"function_response": {"name": "f", "response": {"a": 1, "b": 2}}}, role="function")
        assert told(call, answer) == [("assistant", "[call f] {}"), ("tool", '[f] {"a": 1, "b": 2}')]

    def test_code_that_ran_at_the_provider(self):
        message = content(
            {"executableCode": {"id": "x", "code": "print(1)", "language": "PYTHON"}},
            {"codeExecutionResult": {"id": "x", "outcome": "OUTCOME_OK", "output": "1\n"}},
            {"executableCode": {"code": "1/0"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
            {"text": "It is 1."},
        )
        assert told(message) == [
            ("assistant", "[call code_execution] print(1)"),
            ("tool", "[code_execution] 1\n"),
            ("assistant", "[call code_execution] 1/0"),
            ("error", "[code_execution] ZeroDivisionError"),
            ("assistant", "It is 1."),
        ]

    def test_tools_of_the_provider(self):
        message = content(
            {"toolCall": {"id": "x", "tool_type": "FILE_SEARCH", "args": {}}},
            {"toolResponse": {"id": "x", "response": {"result": [{"text": "Paris"}]}}},
        )
        assert told(message) == [
            ("assistant", "[call file_search] {}"),
            ("tool", '[file_search] [{"text": "Paris"}]'),
        ]

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            ({"inlineData": {"mimeType": "image/png", "data": "A" * 2_000}}, "[image: image/png, 1.5 KB]"),
            ({"inline_data": {"mime_type": "audio/mpeg", "data": "AAAA"}}, "[audio: audio/mpeg, 3 B]"),
            (
                {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf"}},
                "[file: application/pdf, gs://b/a.pdf]",
            ),
        ],
    )
    def test_media(self, part, expected):
        assert only(content({"text": "See:"}, part, {"videoMetadata": {}}, role="user")).content == (
            f"See:\n{expected}"
        )

    def test_a_message_without_a_role_is_the_users(self):
        assert told({"parts": [{"text": "hello"}]}) == [("user", "hello")]

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            (content({"text": "Be brief."}, role="system"), "system message"),
            (content(), "empty message"),
            (content({"text": "hm", "thought": True}), "reasoning only"),
            (content({"hologram": 1}), "unknown content: “object without a type”"),
            (content(role="narrator"), "unknown role “narrator”; expected user, model or assistant"),
            (content(role=["a"]), "the role is a list; expected user, model or assistant"),
        ],
    )
    def test_no_turn(self, message, expected):
        assert reason(message).startswith(expected)


def test_interactions():
    steps = [
        {"type": "user_input", "content": [{"type": "text", "text": "Weather?"}]},
        {"type": "thought", "signature": "E"},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
        {"type": "function_result", "call_id": "c1", "result": "sunny"},
        {"type": "google_search_call", "id": "g", "arguments": {"queries": ["q"]}},
        {"type": "google_search_result", "call_id": "g", "result": [{"title": "T"}], "is_error": False},
        {"type": "model_output", "content": [{"type": "text", "text": "Sunny."}]},
    ]
    expected = [
        ("user", "Weather?"),
        ("assistant", '[call f] {"a": 1}'),
        ("tool", "[f] sunny"),
        ("assistant", '[call google_search] {"queries": ["q"]}'),
        ("tool", '[google_search] [{"title": "T"}]'),
        ("assistant", "Sunny."),
    ]
    assert told({"object": "interaction", "steps": steps}) == expected
    assert told(*(step for step in steps if step["type"] != "thought")) == expected
