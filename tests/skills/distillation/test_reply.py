"""Reading a model's items: kindly, each for itself, and with a reason for each that falls out."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills.distillation.reply import (
    MAX_DROPPED,
    MAX_ITEMS,
    Evidence,
    ReplyItem,
    bounded,
    drop,
    read_items,
    reply_schema,
    unit,
    unquoted,
)


def item(**fields: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "experience_type": "worth_avoiding",
        "title": "Do not cancel before the fare class is known",
        "content": "Basic economy cannot be cancelled.",
        "topic": "tool:cancel_reservation",
        "importance": 0.8,
        "credibility": 0.9,
        "evidence": {"turn": 7, "quote": "Error: not refundable", "signal_type": "tool_error"},
    }
    return defaults | fields


def read_one(**fields: Any) -> ReplyItem:
    (read,), dropped = read_items([item(**fields)])
    assert dropped == []
    return read


def why(**fields: Any) -> str:
    read, (dropped,) = read_items([item(**fields)])
    assert read == []
    return dropped.reason


def test_an_item_as_asked_for_is_taken_as_it_is():
    assert read_one() == ReplyItem(
        experience_type="worth_avoiding",
        title="Do not cancel before the fare class is known",
        content="Basic economy cannot be cancelled.",
        topic="tool:cancel_reservation",
        importance=0.8,
        credibility=0.9,
        evidence=Evidence(turn=7, quote="Error: not refundable", signal_type="tool_error"),
    )


def test_valid_items_survive_invalid_ones_and_these_say_what_is_wrong_with_them():
    read, dropped = read_items(
        [
            item(title="First"),
            item(experience_type="worth_a_try"),
            item(title=" \n"),
            item(title=["a", 1]),
            item(title=17),
            item(title=None),
            item(content={"a": 1}),
            {},
            item(title="Last"),
        ]
    )
    assert [found.title for found in read] == ["First", "Last"]
    assert [found.reason for found in dropped] == [
        "experience_type is none of worth_learning, worth_avoiding",
        "the title is blank",
        "title is not a text",
        "title is not a text",
        "the title is blank",
        "content is not a text",
        "experience_type is none of worth_learning, worth_avoiding",
    ]
    assert json.loads(dropped[1].text)["topic"] == "tool:cancel_reservation"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Worth Learning", "worth_learning"),
        ("worth-avoiding", "worth_avoiding"),
        (" WORTH_AVOIDING ", "worth_avoiding"),
        ("`worth_learning`", "worth_learning"),
        ("avoid", "worth_avoiding"),
        ("learning", "worth_learning"),
    ],
)
def test_a_type_may_be_spelled_otherwise(written, meant):
    assert read_one(experience_type=written).experience_type == meant


def test_a_type_that_is_no_text_falls_out():
    for value in (None, 1, True, ["worth_learning"], {"worth_learning": 1}):
        assert why(experience_type=value) == "experience_type is none of worth_learning, worth_avoiding"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0.8, 0.8),
        (1, 1.0),
        ("0.8", 0.8),
        ("0,8", 0.8),
        (".5", 0.5),
        ("80%", 0.8),
        ("80 %", 0.8),
        ("8/10", 0.8),
        ("about 0.7", 0.0),
        (7, 1.0),
        (-1, 0.0),
        (math.inf, 1.0),
        (-math.inf, 0.0),
        ("Infinity", 1.0),
        (math.nan, 0.0),
        ("NaN", 0.0),
        ("1/0", 0.0),
        ("high", 0.0),
        (None, 0.0),
        (True, 0.0),
        ([0.8], 0.0),
        (10**400, 1.0),
        ("9" * 5000, 0.0),
    ],
)
def test_scores_are_numbers_from_nought_to_one_however_they_are_written(written, meant):
    assert unit(written) == meant


def test_missing_scores_and_texts_are_nothing_rather_than_the_end_of_an_item():
    bare = {"experience_type": "worth_learning", "title": "Ask first"}
    (read,), dropped = read_items([bare])
    assert dropped == []
    assert (read.content, read.topic, read.importance, read.credibility) == ("", "", 0.0, 0.0)
    assert read.evidence == Evidence(turn=None, quote="", signal_type="inferred")


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ("that is wrong", (None, "that is wrong", "inferred")),
        (None, (None, "", "inferred")),
        ([], (None, "", "inferred")),
        (42, (None, "", "inferred")),
        (
            [{"turn": 3, "quote": "no", "signal_type": "user_critique"}, {"turn": 4}],
            (3, "no", "user_critique"),
        ),
        ({"turn": "#3", "quote": "no", "signal": "User-Critique"}, (3, "no", "user_critique")),
        ({"turn": "turn 12", "quote": "no", "signal_type": "rumour"}, (12, "no", "inferred")),
        ({"turn": [5, 6], "quote": None}, (5, "", "inferred")),
        ({"turn": 5.0, "quote": ["a"]}, (5, "", "inferred")),
        ({"turn": True}, (None, "", "inferred")),
        ({"turn": -3}, (None, "", "inferred")),
        ({"turn": 10**30}, (None, "", "inferred")),
        ({"turn": "9" * 30}, (None, "", "inferred")),
        ({"turn_seq": 8, "quote": "“so it is”"}, (8, "so it is", "inferred")),
    ],
)
def test_evidence_comes_in_many_shapes(evidence, expected):
    found = read_one(evidence=evidence).evidence
    assert (found.turn, found.quote, found.signal_type) == expected


def test_evidence_may_lie_beside_the_other_fields():
    flat = item(turn=4, quote="no", signal_type="user_critique")
    del flat["evidence"]
    (read,), _ = read_items([flat])
    assert read.evidence == Evidence(turn=4, quote="no", signal_type="user_critique")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"so it is"', "so it is"),
        ("“so it is”", "so it is"),
        ("«so it is»", "so it is"),
        ("...so it is…", "so it is"),
        ("[turn 7 user 5e1f0c2a]\nso it is", "so it is"),
        ("[turn 7] so", "[turn 7] so"),
        ('"so" it "is"', '"so" it "is"'),
        ("so it's", "so it's"),
        ('"', '"'),
        ("", ""),
        ("…", ""),
    ],
)
def test_marks_around_a_quote_are_not_part_of_it(written, meant):
    assert unquoted(written) == meant


def test_content_in_pieces_is_joined():
    assert read_one(content=["Ask.", "Then cancel."]).content == "Ask.\nThen cancel."


def test_what_no_database_takes_is_cleaned():
    read = read_one(title="Ask\x00 first \ud800", content="\x00", topic="\udfff")
    assert (read.title, read.content, read.topic) == ("Ask first \ufffd", "", "\ufffd")


def test_a_reply_without_end_is_cut_and_says_so():
    read, dropped = read_items([item(title=f"Lesson {number}") for number in range(MAX_ITEMS + 3)])
    assert len(read) == MAX_ITEMS
    assert [found.reason for found in dropped] == [f"more than {MAX_ITEMS} lessons of one session"] * 3


def test_of_many_that_fell_out_the_last_entry_counts_the_rest():
    kept = bounded([drop("the title is blank", {}) for _ in range(MAX_DROPPED + 10)])
    assert (len(kept), kept[-1].reason) == (MAX_DROPPED, "and 11 more")
    assert bounded(kept) == kept


def test_what_fell_out_is_kept_shortened():
    assert len(drop("r", item(content="word " * 10_000)).text) <= 500
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert "nested deeper" in drop("r", deep).text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["experience_type", "title", "content", "topic", "importance", "credibility", "evidence", "turn"]


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8), max_size=3))
def test_whatever_comes_every_item_is_either_read_or_dropped(items):
    read, dropped = read_items(items)
    assert len(read) + len(dropped) == len(items)
    for found in read:
        assert 0.0 <= found.importance <= 1.0
        assert 0.0 <= found.credibility <= 1.0


def objects_of(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in objects_of(part)]
    if not isinstance(schema, dict):
        return []
    inner = [found for part in schema.values() for found in objects_of(part)]
    return [schema, *inner] if schema.get("type") == "object" else inner


def test_the_schema_is_plain_enough_for_any_endpoint():
    schema = reply_schema()
    assert list(schema["properties"]) == ["experiences"]
    lesson = schema["properties"]["experiences"]["items"]
    assert lesson["properties"]["experience_type"] == {
        "type": "string",
        "enum": ["worth_learning", "worth_avoiding"],
    }
    assert lesson["properties"]["evidence"]["properties"]["turn"] == {"type": "integer"}
    text = json.dumps(schema)
    assert not any(word in text for word in ("$ref", "$defs", "anyOf", "pattern", "default"))
    for found in objects_of(schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
