"""Shapes that users hit and no recording holds: each with its exact turn."""

from __future__ import annotations

import json
from typing import Any

from conversations.extraction import extract
from tests.conversations.extraction.single import call

DEFAULTS = {
    "tool_calls": [],
    "tool_name": "",
    "tool_call_id": "",
    "is_error": False,
    "truncated": False,
    "message_id": "",
    "part": 0,
}
DEPTH = 5_000


def turns(*messages: Any) -> list[dict[str, Any]]:
    """Every field of every turn but index and hash; no message may be skipped."""
    extraction = extract(list(messages))
    assert extraction.skipped == []
    return [
        {key: value for key, value in vars(turn).items() if key not in ("index", "content_hash")}
        for turn in extraction.turns
    ]


def turn(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | DEFAULTS | fields


def data(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def test_nul_and_lone_surrogates_in_content():
    assert turns({"role": "user", "content": "a\x00b\ud83dc", "id": "m\x00\udc00"}) == [
        turn("user", "ab\ufffdc", message_id="m\ufffd")
    ]


def test_nul_and_lone_surrogates_in_the_text_of_parts_and_in_results():
    message = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t\x00", "content": "\ud800!"}],
    }
    assert turns(message) == [turn("tool", "[tool] \ufffd!", tool_call_id="t")]


def test_nul_and_lone_surrogates_in_json_keys():
    arguments = {"k\x00ey\udfff": 1, "key\ufffd": 2}
    assert turns({"role": "assistant", "tool_calls": [call("f", arguments)], "rol\x00": "x"}) == [
        turn(
            "assistant",
            '[call f] {"key\ufffd": 2}',
            tool_calls=[data("call_1", "f", {"key\ufffd": 2})],
        )
    ]


def test_escaped_nul_and_surrogates_in_arguments_that_are_text():
    text = '{"a\\u0000": "\\ud800"}'
    assert turns({"role": "assistant", "tool_calls": [call("f", text)]}) == [
        turn("assistant", f"[call f] {text}", tool_calls=[data("call_1", "f", {"a": "\ufffd"})])
    ]


def test_duplicate_call_ids():
    calls = {"role": "assistant", "tool_calls": [call("f", "{}", "x"), call("g", "{}", "x")]}
    results = [{"role": "tool", "tool_call_id": "x", "content": text} for text in ("1", "2")]
    assert turns(calls, *results) == [
        turn("assistant", "[call f] {}\n[call g] {}", tool_calls=[data("x", "f", {}), data("x", "g", {})]),
        turn("tool", "[f] 1", tool_name="f", tool_call_id="x"),
        turn("tool", "[g] 2", tool_name="g", tool_call_id="x"),
    ]


def test_missing_call_ids():
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in "fg"]
    results = [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    assert turns({"role": "assistant", "tool_calls": calls}, *results) == [
        turn("assistant", "[call f] {}\n[call g] {}", tool_calls=[data("", "f", {}), data("", "g", {})]),
        turn("tool", "[f] 1", tool_name="f"),
        turn("tool", "[g] 2", tool_name="g"),
    ]


def test_empty_string_ids():
    calls = {"role": "assistant", "id": "", "tool_calls": [call("f", "{}", "")]}
    result = {"role": "tool", "tool_call_id": "", "id": "", "content": "1"}
    assert turns(calls, result) == [
        turn("assistant", "[call f] {}", tool_calls=[data("", "f", {})]),
        turn("tool", "[f] 1", tool_name="f"),
    ]


def test_arguments_as_an_object():
    assert turns(
        {"role": "assistant", "content": "", "tool_calls": [call("f", {"a": [1, {"b": None}]})]}
    ) == [
        turn(
            "assistant",
            '[call f] {"a": [1, {"b": null}]}',
            tool_calls=[data("call_1", "f", {"a": [1, {"b": None}]})],
        )
    ]


def test_not_a_number_in_the_json_of_a_model():
    calls = [call("f", '{"a": NaN, "b": -Infinity}'), call("g", {"a": float("nan")}, "call_2")]
    assert turns({"role": "assistant", "tool_calls": calls}) == [
        turn(
            "assistant",
            '[call f] {"a": NaN, "b": -Infinity}\n[call g] {"a": null}',
            tool_calls=[data("call_1", "f", {"a": None, "b": None}), data("call_2", "g", {"a": None})],
        )
    ]
    assert turns({"role": "tool", "name": "f", "content": {"a": float("inf")}}) == [
        turn("tool", '[f] {"a": null}', tool_name="f")
    ]


def test_a_single_object_where_a_list_was_asked_for():
    message = {"role": "assistant", "content": {"type": "text", "text": "Hm."}, "tool_calls": call("f", "{}")}
    expected = [turn("assistant", "Hm.\n[call f] {}", tool_calls=[data("call_1", "f", {})])]
    assert turns(message) == expected
    assert [item.content for item in extract(message).turns] == ["Hm.\n[call f] {}"]  # type: ignore[arg-type]


def test_arguments_nested_five_thousand_deep_stay_text():
    text = '{"a":' * DEPTH + "1" + "}" * DEPTH
    [read] = turns({"role": "assistant", "tool_calls": [call("f", text)]})
    assert read["content"] == f"[call f] {text}"
    assert read["tool_calls"] in ([data("call_1", "f", text)], [data("call_1", "f", _cut(98))])


def _cut(levels: int) -> Any:
    """What is left of the nested arguments where the parser can read them: a marker below some level."""
    value: Any = "[nested deeper than 100 levels, left out]"
    for _ in range(levels + 2):
        value = {"a": value}
    return value


def test_json_nested_five_thousand_deep_leaves_a_marker_and_its_siblings_alone():
    deep: Any = "bottom"
    for _ in range(DEPTH):
        deep = [deep]
    marker = "[nested deeper than 100 levels, left out]"
    shallow = "[" * 99 + json.dumps(marker) + "]" * 99
    assert turns(
        {"role": "user", "content": "before"},
        {"role": "tool", "name": "f", "content": deep},
        {"role": "user", "content": "after"},
    ) == [turn("user", "before"), turn("tool", f"[f] {shallow}", tool_name="f"), turn("user", "after")]


def test_messages_nested_in_replies_five_thousand_deep_are_reported():
    deep: Any = {"role": "user", "content": "bottom"}
    for _ in range(DEPTH):
        deep = {"choices": [{"message": deep}]}
    extraction = extract([deep, {"role": "user", "content": "after"}])
    assert [item.content for item in extraction.turns] == ["after"]
    assert [(item.index, item.unreadable) for item in extraction.skipped] == [(0, True)]
