from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content
from skills.review.diffs import Segment, changed_words, diff_texts, field_diffs

OLD = Content(
    name="pay-an-order",
    description="Use when an order is paid.",
    instructions="1. Ask which card to use.\n2. Charge it.",
    triggers=["pay an order"],
    examples=[{"input": "Pay #7", "output": {"ok": True}}],
)


def pieces(before: str, after: str) -> list[tuple[str, str]]:
    return [(segment.kind, segment.text) for segment in diff_texts("field", before, after).segments]


def test_only_the_words_that_changed_are_marked():
    assert pieces("Ask which card to use.", "Ask which gift card to use.") == [
        ("equal", "Ask which "),
        ("insert", "gift "),
        ("equal", "card to use."),
    ]


def test_words_that_changed_together_are_one_change():
    assert pieces("Use the first card.", "Use another stored card.") == [
        ("equal", "Use "),
        ("delete", "the first"),
        ("insert", "another stored"),
        ("equal", " card."),
    ]


def test_lines_stay_lines():
    assert pieces("1. Ask.\n2. Charge it.\n", "1. Ask.\n2. Check the balance.\n3. Charge it.\n") == [
        ("equal", "1. Ask.\n2. "),
        ("insert", "Check the balance.\n3. "),
        ("equal", "Charge it.\n"),
    ]


def test_scripts_without_spaces_are_compared_by_letter():
    assert pieces("注文を払う", "注文を先に払う") == [
        ("equal", "注文を"),
        ("insert", "先に"),
        ("equal", "払う"),
    ]


def test_each_field_counts_its_words():
    new = replace(
        OLD,
        instructions="1. Ask which card to use.\n2. Check its balance.\n3. Charge it.",
        triggers=["pay an order", "settle a bill"],
    )

    diffs = {diff.field: diff for diff in field_diffs(OLD, new)}

    assert [name for name, diff in diffs.items() if diff.changed] == ["instructions", "triggers"]
    assert (diffs["instructions"].added, diffs["instructions"].removed) == (4, 0)
    assert (diffs["triggers"].added, diffs["triggers"].removed) == (3, 0)
    assert changed_words(list(diffs.values())) == (7, 0)


def test_unchanged_fields_are_there_to_read():
    diffs = {diff.field: diff for diff in field_diffs(OLD, replace(OLD, description="Use when paying."))}

    assert list(diffs) == ["name", "entry_type", "description", "instructions", "triggers", "examples"]
    assert diffs["examples"].segments == (Segment("equal", 'input: Pay #7\noutput: {"ok": true}'),)


def test_a_new_skill_is_all_insertion():
    diffs = field_diffs(None, OLD)

    assert {segment.kind for diff in diffs for segment in diff.segments} == {"insert"}
    assert changed_words(diffs) == (28, 0)


def test_a_field_that_was_emptied_is_shown():
    diffs = {diff.field: diff for diff in field_diffs(OLD, replace(OLD, triggers=[]))}

    assert diffs["triggers"].segments == (Segment("delete", "pay an order"),)


@given(st.text(alphabet="ab \n漢x.\t\u2028", max_size=80), st.text(alphabet="ab \n漢x.\t\u2028", max_size=80))
def test_segments_rebuild_both_texts(before, after):
    diff = diff_texts("field", before, after)

    assert (diff.before, diff.after) == (before, after)
    assert diff.changed == (before != after)
    assert all(segment.text for segment in diff.segments)
    neighbours = set(pairwise(segment.kind for segment in diff.segments))
    assert neighbours <= {
        ("equal", "delete"),
        ("equal", "insert"),
        ("delete", "insert"),
        ("delete", "equal"),
        ("insert", "equal"),
    }


def test_long_texts_stay_readable():
    lines = [f"{number}. Do step {number} of the long procedure with care." for number in range(1_200)]
    before = "\n".join(lines)
    after = "\n".join(line.replace("care", "patience") for line in lines)

    diff = diff_texts("instructions", before, after)

    assert (diff.added, diff.removed) == (1_200, 1_200)
    assert (diff.before, diff.after) == (before, after)


def test_text_made_to_be_slow_is_replaced_whole():
    diff = diff_texts("instructions", "a " * 30_000, "b a " * 15_000)

    assert [segment.kind for segment in diff.segments].count("delete") == 1
    assert diff.after == "b a " * 15_000
