"""ShareGPT messages."""

from __future__ import annotations

import pytest

from conversations.extraction import extract
from tests.conversations.extraction.single import only, reason


@pytest.mark.parametrize(
    ("sender", "role"),
    [
        ("human", "user"),
        ("user", "user"),
        ("gpt", "assistant"),
        ("GPT", "assistant"),
        ("chatgpt", "assistant"),
    ],
)
def test_speech(sender, role):
    turn = only({"from": sender, "value": "hello"})
    assert (turn.role, turn.content) == (role, "hello")


def test_system_is_left_out():
    assert reason({"from": "system", "value": "be brief"}) == "system message"


@pytest.mark.parametrize(
    "value",
    [
        '{"name": "add", "arguments": {"a": 1}}',
        '[{"name": "add", "arguments": {"a": 1}}]',
        '{"function": {"name": "add", "arguments": {"a": 1}}}',
        {"name": "add", "parameters": {"a": 1}},
    ],
)
def test_a_call_of_its_own(value):
    turn = only({"from": "function_call", "value": value})
    assert (turn.role, turn.content) == ("assistant", '[call add] {"a": 1}')


def test_a_call_that_is_no_json_is_kept_as_it_stands():
    assert only({"from": "function_call", "value": "add(1, 2)"}).content == "[call] add(1, 2)"


@pytest.mark.parametrize("sender", ["observation", "tool", "function_response"])
def test_a_result_answers_the_call_before_it(sender):
    call = {"from": "function_call", "value": '{"name": "add", "arguments": {}}'}
    turn = only({"from": sender, "value": "Error: no numbers"}, call)
    assert (turn.role, turn.tool_name, turn.is_error) == ("tool", "add", True)
    assert turn.content == "[add] Error: no numbers"


def test_calls_and_results_in_tags():
    text = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    call = only({"from": "gpt", "value": text})
    assert call.content == 'I add.\n[call add] {"a": 1}'
    results = (
        '<tool_response>\n{"name": "add", "content": {"sum": 3}}\n</tool_response>\n'
        "<tool_response>\nError: none\n</tool_response>"
    )
    turns = extract([{"from": "tool", "value": results}]).turns
    assert [turn.content for turn in turns] == ['[add] {"sum": 3}', "[tool] Error: none"]
    assert [turn.is_error for turn in turns] == [False, False]


def test_text_around_responses_stays_with_them():
    call = {"from": "function_call", "value": '{"name": "add", "arguments": {}}'}
    text = "before <tool_response>\nx\n</tool_response> after"
    assert only({"from": "tool", "value": text}, call).content == "[add] x\nbefore\nafter"
    named = '<tool_response>{"name": "f", "content": {"a": 1}}</tool_response> after'
    assert only({"from": "tool", "value": named}).content == '[f] {"a": 1}\nafter'


def test_who_writes_about_the_tags_calls_nothing():
    text = "I use <tool_call> tags, as in <tool_call>foo</tool_call>, in prose"
    turn = only({"from": "gpt", "value": text})
    assert (turn.content, turn.tool_calls) == (text, [])


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("{'name': 'f', 'arguments': {'a': True, 'b': None}}", {"a": True, "b": None}),
        ('{"name": "f", "arguments": {"a": }', '{"name": "f", "arguments": {"a": }'),
    ],
)
def test_a_call_in_pythons_words_or_cut_keeps_its_name(body, arguments):
    turn = only({"from": "gpt", "value": f"Go. <tool_call>{body}</tool_call>"})
    assert turn.tool_calls == [{"id": "", "name": "f", "arguments": arguments}]


def test_whom_nobody_knows():
    extraction = extract([{"from": "judge", "value": "ten points"}])
    assert extraction.skipped[0].unreadable
    assert extraction.skipped[0].reason.startswith(
        "from “judge”, whom nobody knows; expected human, user, gpt"
    )
