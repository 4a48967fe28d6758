"""Anchored replacements: literal, once, all or none, and never without a way back."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.anchors import AnchorsRefused, Replacement, apply, between, undo

TEXT = "1. Look the order up.\n2. Ask for a card.\n3. Pay.\n"


def put(old: str, new: str) -> Replacement:
    return Replacement(old=old, new=new)


def reasons(text: str, *replacements: Replacement) -> list[str]:
    with pytest.raises(AnchorsRefused) as refused:
        apply(text, replacements)
    assert str(refused.value) == " ".join(refused.value.reasons)
    return refused.value.reasons


def test_the_words_named_give_way_to_others():
    assert apply(TEXT, [put("a card", "a credit card")]) == TEXT.replace("a card", "a credit card")


def test_several_replacements_apply_to_the_text_as_it_was_in_any_order():
    swapped = [put("3. Pay", "2. Ask"), put("2. Ask", "3. Pay")]
    assert apply("2. Ask. 3. Pay.", swapped) == "3. Pay. 2. Ask."


def test_an_insertion_repeats_what_stands_before_it():
    assert apply("a\nc\n", [put("a\n", "a\nb\n")]) == "a\nb\nc\n"


def test_words_may_go_without_others_in_their_place():
    assert apply(TEXT, [put("2. Ask for a card.\n", "")]) == "1. Look the order up.\n3. Pay.\n"


def test_an_empty_text_has_one_place():
    assert apply("", [put("", "new")]) == "new"


@pytest.mark.parametrize("pattern", [r"\d", r"\1", r"(?P<a>.)\g<a>", "$1", "{0}", "%s", ".*", "\\"])
def test_what_looks_like_a_pattern_is_plain_text(pattern):
    text = f"Match {pattern} or 7."
    assert apply(text, [put(pattern, f"{pattern}{pattern}")]) == f"Match {pattern}{pattern} or 7."
    assert apply("Match 7.", [put("7", pattern)]) == f"Match {pattern}."
    assert reasons("Match 7.", put(pattern + "x", ""))


def test_old_text_that_is_not_there_is_refused_with_a_hint_where_it_nearly_is():
    assert reasons(TEXT, put("Ask for a voucher", "")) == [
        "The old text “Ask for a voucher” is not there, letter by letter."
    ]
    hint = "It differs in white space, case or kind of characters."
    assert reasons(TEXT, put("ask for  a card", "")) == [
        f"The old text “ask for a card” is not there, letter by letter. {hint}"
    ]


@pytest.mark.parametrize(("text", "old"), [("Pay. Pay.", "Pay"), ("aaa", "aa"), ("a\na\n", "a\n")])
def test_old_text_that_stands_twice_is_refused(text, old):
    (reason,) = reasons(text, put(old, "x"))
    assert reason.endswith("is there more than once: name more of what stands around it.")


def test_an_empty_old_text_is_refused():
    assert reasons(TEXT, put("", "x")) == ["The old text is empty: name the words that are to be replaced."]


def test_overlapping_old_texts_are_refused():
    assert reasons("abcdef", put("abc", "1"), put("cde", "2")) == ["The old texts “abc” and “cde” overlap."]
    assert reasons("abcdef", put("abc", "1"), put("abc", "1")) == ["The old texts “abc” and “abc” overlap."]
    assert apply("abcdef", [put("abc", "1"), put("def", "2")]) == "12"


def test_every_reason_is_told_at_once():
    assert len(reasons(TEXT, put("voucher", ""), put("", ""), put("3. Pay", "3. Buy"))) == 2


def test_whole_lines_lead_from_one_text_to_another():
    after = "1. Look the order up.\n2. Ask for a credit card.\n3. Pay.\n"
    assert between(TEXT, after) == [put("2. Ask for a card.\n", "2. Ask for a credit card.\n")]


def test_a_line_that_stands_several_times_brings_its_neighbours_along():
    assert between("a\n-\nb\n-\n", "a\n-\nb\n+\n") == [put("b\n-\n", "b\n+\n")]


def test_an_insertion_is_found_by_the_lines_that_stand_around_it():
    assert between("a\nb\nc\n", "a\nb\nx\nc\n") == [put("b\nc\n", "b\nx\nc\n")]


def test_changes_that_touch_are_one():
    assert between("a\nb\nc\n", "x\na\ny\nb\nc\n") == [put("a\nb\n", "x\na\ny\nb\n")]


def test_equal_texts_need_no_replacement():
    assert between(TEXT, TEXT) == []
    assert between("", "") == []


def applied(text: str, replacements: list[Replacement]) -> str | None:
    try:
        return apply(text, replacements)
    except AnchorsRefused as refused:
        return None if refused.reasons else pytest.fail("refused without a reason")


# Few letters and line ends of all kinds, so that most anchors stand several times.
texts = st.text(alphabet="ab \n\r\\", max_size=40)
long_texts = st.one_of(texts, st.text(max_size=80), st.lists(st.sampled_from("abc")).map("\n".join))


@st.composite
def edits(draw) -> tuple[str, list[Replacement]]:
    """A text and replacements most of which name words of it."""
    text = draw(long_texts)
    places = st.integers(0, len(text))
    olds = st.one_of(
        st.builds(lambda one, other: text[min(one, other) : max(one, other)], places, places), texts
    )
    replacements = draw(st.lists(st.builds(put, olds, texts), max_size=4))
    return text, replacements


@given(edits())
def test_an_edit_applies_exactly_or_is_refused_with_a_reason(edit):
    text, replacements = edit
    after = applied(text, replacements)
    if after is None:
        assert all(reason.endswith(".") for reason in reasons(text, *replacements))
        return
    expected, taken = text, 0
    for replacement in sorted(replacements, key=lambda item: text.find(item.old), reverse=True):
        place = text.find(replacement.old)
        assert text.find(replacement.old, place + 1) in {-1, 0}
        expected = expected[:place] + replacement.new + expected[place + len(replacement.old) :]
        taken += 1
    assert (after, taken) == (expected, len(replacements))


@given(edits())
def test_undoing_an_edit_gives_the_original_text(edit):
    text, replacements = edit
    after = applied(text, replacements)
    if after is None:
        with pytest.raises(AnchorsRefused):
            undo(text, replacements)
        return
    back = undo(text, replacements)
    assert apply(after, back).encode("utf-8", "surrogatepass") == text.encode("utf-8", "surrogatepass")


@given(long_texts, long_texts)
def test_what_lies_between_two_texts_leads_from_one_to_the_other_and_back(before, after):
    there = between(before, after)
    assert apply(before, there) == after
    assert apply(after, undo(before, there)) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n" * 30_000, "a\n" * 15_000 + "b\n" + "a\n" * 15_000),
        ("".join(f"{n}\n" for n in range(12_000)), "".join(f"{n + n % 2}\n" for n in range(12_000))),
        ("a" * 65_000, "a" * 65_000 + "b"),
        ("a\nb\n" * 16_000, "b\na\n" * 16_000),
    ],
)
def test_long_texts_take_no_longer_than_a_reader_would_wait(before, after):
    started = time.perf_counter()
    assert apply(before, between(before, after)) == after
    assert time.perf_counter() - started < 5
