"""LangChain messages, in each way they are written down."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason

CALL = {"name": "find", "args": {"id": 7}, "id": "c1", "type": "tool_call"}
RAW_CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}


def data(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "data": fields}


def flat(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def constructor(kind: str, **fields: Any) -> dict[str, Any]:
    path = ["langchain_core", "messages", f"{kind.title() if kind != 'ai' else 'AI'}Message"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


def chunk(kind: str, **fields: Any) -> dict[str, Any]:
    message = constructor(kind, **fields)
    message["id"][-1] += "Chunk"
    return message


FORMS = pytest.mark.parametrize("form", [data, flat, constructor, chunk])


@FORMS
class TestForms:
    @pytest.mark.parametrize(("kind", "role"), [("human", "user"), ("ai", "assistant")])
    def test_speech(self, form, kind, role):
        turn = only(form(kind, content="hello", id="run-1", additional_kwargs={}))
        assert (turn.role, turn.content, turn.message_id) == (role, "hello", "run-1")

    def test_parts(self, form):
        parts = [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://x.y/z.png"}},
        ]
        assert only(form("human", content=parts)).content == "look\n[image: https://x.y/z.png]"

    def test_system_is_left_out(self, form):
        assert reason(form("system", content="be brief")) == "system message"

    def test_a_call(self, form):
        turn = only(form("ai", content="", tool_calls=[CALL], additional_kwargs={"tool_calls": [RAW_CALL]}))
        assert turn.content == '[call find] {"id": 7}'
        assert turn.tool_calls == [{"id": "c1", "name": "find", "arguments": {"id": 7}}]

    def test_a_call_as_the_model_made_it(self, form):
        turn = only(form("ai", content="", additional_kwargs={"tool_calls": [RAW_CALL]}))
        assert turn.tool_calls == [{"id": "c1", "name": "find", "arguments": {"id": 7}}]

    def test_a_legacy_call(self, form):
        extra = {"function_call": {"name": "find", "arguments": "{}"}}
        assert only(form("ai", content="", additional_kwargs=extra)).content == "[call find] {}"

    def test_a_call_that_could_not_be_parsed(self, form):
        broken = {"name": "find", "args": '{"id": ', "id": "c2", "error": "bad", "type": "invalid_tool_call"}
        turn = only(form("ai", content="", tool_calls=[CALL], invalid_tool_calls=[broken]))
        assert [call["arguments"] for call in turn.tool_calls] == [{"id": 7}, '{"id": ']

    def test_a_call_that_stands_in_the_content_too_is_one(self, form):
        content = [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "find", "input": {"id": 7}},
        ]
        turn = only(form("ai", content=content, tool_calls=[CALL]))
        assert turn.content == 'I look.\n[call find] {"id": 7}'

    def test_a_result(self, form):
        before = form("ai", content="", tool_calls=[CALL])
        turn = only(form("tool", content="none", tool_call_id="c1", status="success"), before)
        assert (turn.content, turn.tool_name, turn.tool_call_id, turn.is_error) == (
            "[find] none",
            "find",
            "c1",
            False,
        )

    def test_a_failed_result(self, form):
        assert only(form("tool", content="none", name="find", tool_call_id="c1", status="error")).is_error

    def test_an_artifact_is_left_out_and_counted(self, form):
        extraction = extract([form("tool", content="ok", name="f", tool_call_id="c", artifact={"rows": [1]})])
        assert (extraction.turns[0].content, extraction.omitted) == ("[f] ok", {"artifact": 1})

    def test_the_result_of_a_function(self, form):
        assert only(form("function", content="4", name="add")).content == "[add] 4"

    @pytest.mark.parametrize(("role", "expected"), [("user", "user"), ("Assistant", "assistant")])
    def test_chat_with_a_role_of_its_own(self, form, role, expected):
        assert only(form("chat", content="hello", role=role)).role == expected

    def test_chat_of_nobody_known(self, form):
        assert reason(form("chat", content="hello", role="judge")).startswith(
            "unknown kind of LangChain message “judge”; expected ai, chat, function, human"
        )

    def test_reasoning_is_left_out_and_counted(self, form):
        extraction = extract([form("ai", content="yes", additional_kwargs={"reasoning_content": "hm"})])
        assert (extraction.turns[0].content, extraction.omitted) == ("yes", {"reasoning": 1})


def test_chunks_of_a_call_are_joined():
    chunks = [
        {"name": "find", "args": '{"id"', "id": "c1", "index": 0},
        {"name": None, "args": ": 7}", "id": None, "index": 0},
    ]
    turn = only(chunk("ai", content="", tool_call_chunks=chunks))
    assert turn.tool_calls == [{"id": "c1", "name": "find", "arguments": {"id": 7}}]


def test_other_serialized_objects_are_no_messages():
    prompt = {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", "PromptTemplate"], "kwargs": {}}
    assert extract([prompt]).skipped[0].unreadable
