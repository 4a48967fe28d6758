"""Runs as LangSmith records them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only
from tests.data import records

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}


def run(run_id: str = "r1", kind: str = "llm", **fields: Any) -> dict[str, Any]:
    return {"id": run_id, "run_type": kind, "trace_id": "t", "dotted_order": run_id, "inputs": {}} | fields


def said(payload: Any) -> list[tuple[str, str]]:
    extraction = extract([payload])
    assert extraction.skipped == []
    return [(turn.role, turn.content) for turn in extraction.turns]


TALK = [("user", "hello"), ("assistant", "hi")]


def langchain(kind: str, content: str) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", kind],
        "kwargs": {"content": content},
    }


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ({"messages": [HELLO]}, {"choices": [{"index": 0, "message": HI}]}),
        ({"messages": [HELLO]}, HI),
        ({"messages": [HELLO]}, {"message": HI}),
        ({"messages": [HELLO]}, {"messages": [HELLO, HI]}),
        ({"messages": [HELLO]}, {"output": "hi"}),
        (
            {"messages": [[langchain("HumanMessage", "hello")]]},
            {"generations": [[{"text": "hi", "message": langchain("AIMessage", "hi")}]]},
        ),
        ({"prompts": ["hello"]}, {"generations": [[{"text": "hi"}]]}),
        ({"input": "hello"}, {"answer": "hi"}),
        ({"question": "hello"}, {"output": {"role": "assistant", "content": "hi"}}),
        ({"input": {"messages": [HELLO]}}, {"output": {"messages": [HELLO, HI]}}),
        (
            {"messages": [HELLO]},
            {
                "output": [
                    {"choices": [{"delta": {"content": "h"}}]},
                    {"choices": [{"delta": {"content": "i"}}]},
                ]
            },
        ),
    ],
)
def test_what_a_run_was_given_and_gave(inputs, outputs):
    assert said(run(inputs=inputs, outputs=outputs)) == TALK


def test_the_pieces_of_a_run_are_put_together():
    begun = run(inputs={"messages": [HELLO]}, outputs={})
    ended = {"id": "r1", "trace_id": "t", "dotted_order": "r1", "outputs": {"choices": [{"message": HI}]}}
    assert said({"post": [begun], "patch": [ended]}) == TALK


@pytest.mark.parametrize(
    "tokens",
    [
        [{"token": "h"}, {"token": "i"}],
        [{"token": {"choices": [{"delta": {"content": text}}]}} for text in ("", "h", "i")],
        [{"token": "h", "chunk": {"text": "h", "message": langchain("AIMessageChunk", "h")}}, {"token": "i"}],
    ],
)
def test_what_was_streamed_is_joined(tokens):
    events = [{"name": "new_token", "time": "t", "kwargs": token} for token in tokens]
    assert said(run(inputs={"messages": [HELLO]}, events=events)) == TALK


def test_streamed_calls_are_joined():
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
    ]
    chunks = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    turn = only(run(inputs={}, outputs={"output": chunks}))
    assert turn.tool_calls == [{"id": "c1", "name": "add", "arguments": {"a": 1}}]


def test_what_each_run_of_a_model_repeats_is_read_once():
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "c", "content": "4"}
    first = run("r1", inputs={"messages": [HELLO]}, outputs={"choices": [{"message": call}]})
    tool = run("r2", "tool", name="f", inputs={"input": "{}"}, outputs={"output": "4"})
    second = run("r3", inputs={"messages": [HELLO, call, result]}, outputs={"choices": [{"message": HI}]})
    chain = run("r0", "chain", inputs={"input": "hello"}, outputs={"output": "hi"})
    assert said({"post": [second, chain, first, tool]}) == [
        ("user", "hello"),
        ("assistant", "[call f] {}"),
        ("tool", "[f] 4"),
        ("assistant", "hi"),
    ]


def test_runs_of_tools_alone():
    failed = run(kind="tool", name="add", inputs={"a": 1}, outputs=None, error="ValueError: b")
    turns = extract([failed]).turns
    assert [turn.content for turn in turns] == ['[call add] {"a": 1}', "[add] ValueError: b"]
    assert turns[1].is_error


def test_a_chain_alone():
    assert said(run(kind="chain", inputs={"question": "hello"}, outputs={"output": "hi"})) == TALK


def test_recorded_payloads():
    counts: Counter[str] = Counter()
    for record in records("traj/langsmith_openai_runs.jsonl"):
        data = record["data"]
        messages = data if isinstance(data, list) else [data]
        extraction = extract(messages)
        told = {turn.index for turn in extraction.turns} | {item.index for item in extraction.skipped}
        assert told == set(range(len(messages)))
        counts.update(turn.role for turn in extraction.turns)
        counts.update(item.reason for item in extraction.skipped)
    assert counts == {
        "user": 13,
        "assistant": 15,
        "tool": 5,
        "call of the client only": 11,
        "event only": 47,
        "reasoning only": 3,
    }
