"""Replies of a model: what is read, what is refused, and that no reply breaks the reader or takes it long."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.llm.replies import MAX_DROPPED, ParsedReply, parse_reply
from tests.data import records
from tests.mirix.llm.reply_corpus import CORPUS, TEXT_A, A, Case

VERDICTS = {"ok", "empty", "unreadable"}
MAX_SECONDS = 30
"""Far above what any reply takes on an idle machine (8); without bounds it would be hours."""


def check_whole(reply: ParsedReply) -> None:
    """What holds for every reply."""
    assert reply.verdict in VERDICTS
    assert (reply.verdict == "ok") == bool(reply.items)
    assert (reply.verdict == "unreadable") == bool(reply.reason)
    assert all(isinstance(item, dict) and item for item in reply.items)
    assert not (reply.verdict == "empty" and reply.dropped)
    assert len(reply.dropped) <= MAX_DROPPED
    json.dumps(reply.items, allow_nan=False).encode()


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_corpus(case: Case) -> None:
    reply = parse_reply(case.text, truncated=case.truncated)
    assert (reply.verdict, reply.items) == (case.verdict, case.items)
    assert (reply.how, [reason for reason, _ in reply.dropped]) == (case.how, case.reasons)
    check_whole(reply)


def test_the_corpus_is_as_large_as_it_must_be() -> None:
    assert len(CORPUS) == len({case.name for case in CORPUS}) >= 60
    assert sum(case.verdict == "ok" for case in CORPUS) >= 40


@pytest.mark.parametrize("name", ["json/llm_json_cases.jsonl", "json/issue_cases.jsonl"])
def test_each_shared_reply_has_one_verdict(name: str) -> None:
    for record in records(name):
        check_whole(parse_reply(record["input"]))
        check_whole(parse_reply(record["input"], truncated=True))


def test_shared_replies_that_are_lists_of_objects_come_out_as_they_are() -> None:
    for record in records("json/llm_json_cases.jsonl"):
        try:
            value = json.loads(record["input"])
        except ValueError:
            continue
        if isinstance(value, list) and value and all(isinstance(item, dict) and item for item in value):
            assert parse_reply(record["input"]).items == value


def test_prose_with_braces_before_the_payload() -> None:
    travel, facts, fenced = (record["input"] for record in records("json/issue_cases.jsonl"))
    assert parse_reply(travel, key="memory").items == [{"id": "0", "text": "likes travel", "event": "ADD"}]
    for text in (facts, fenced):
        reply = parse_reply(text, key="facts")
        assert (reply.verdict, reply.items) == ("unreadable", [])
        assert reply.dropped == [("not an object", "fact1"), ("not an object", "fact2")]


def test_the_reason_says_nothing_of_the_reply() -> None:
    reply = parse_reply("secret words")
    assert reply.reason == "the reply has no JSON"
    assert parse_reply("I'm sorry, secret words").reason == "the reply is a refusal"


FIELDS = st.dictionaries(
    st.text(min_size=1).filter(str.strip),
    st.text() | st.integers(-(2**53), 2**53) | st.booleans(),
    min_size=1,
)


@given(st.text() | st.text(alphabet="[]{}\",:'\\ab1\n/*#“”‘’`<>."), st.booleans())
def test_whatever_it_is_it_has_one_verdict(text: str, truncated: bool) -> None:
    check_whole(parse_reply(text, truncated=truncated))


@given(st.integers(0, len(TEXT_A) - 1))
def test_a_reply_cut_anywhere_keeps_the_items_before_and_makes_up_none(cut: int) -> None:
    assert parse_reply(f"[{TEXT_A}, {TEXT_A[:cut]}").items == [A]
    assert parse_reply(f'{{"experiences": [{TEXT_A[:cut]}').items == []


@given(st.lists(st.fixed_dictionaries({"title": st.text(), "content": st.text()}), min_size=1, unique_by=str))
def test_prose_and_a_fence_change_nothing(items: list[dict[str, str]]) -> None:
    text = json.dumps({"experiences": items}, indent=1)
    assert parse_reply(f"Here you are:\n```json\n{text}\n```\nDone.").items == parse_reply(text).items


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "[" * 5_000 + "]" * 5_000,
        '{"a":' * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        f"[{TEXT_A}, " + "[" * 5_000,
        '{"experiences": [' * 5_000,
    ],
)
def test_nesting_without_end_is_answered_at_once(text: str) -> None:
    began = time.perf_counter()
    check_whole(parse_reply(text))
    assert time.perf_counter() - began < MAX_SECONDS


@pytest.mark.parametrize(
    "part",
    [
        "x ",
        "[",
        "['",
        '{"a":"',
        '[{"a":"b"c"},',
        "[/*",
        "[//",
        "#[",
        "{a:",
        "{ ",
        "[]\n",
        "{},",
        '"experiences":[',
        "&quot;[",
    ],
)
def test_ten_megabytes_end_soon(part: str) -> None:
    began = time.perf_counter()
    check_whole(parse_reply(part * (10_000_000 // len(part))))
    assert time.perf_counter() - began < MAX_SECONDS


def test_ten_megabytes_of_plain_json_are_read_up_to_a_number_of_items() -> None:
    reply = parse_reply("[" + ",".join(['{"a": 1}'] * 1_000_000) + "]")
    assert (reply.verdict, len(reply.items)) == ("ok", 1_000)
    assert reply.dropped == [("beyond the first 1000 elements", "999000 more")]
