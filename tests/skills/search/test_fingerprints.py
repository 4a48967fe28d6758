"""Text that was served is recognised in whatever wraps it, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.search.fingerprints import MASK, MIN_WORDS, ServedText, words

TEXT = "1. Ask which card to use.\n2. Charge it, then send the receipt to the customer."
SERVED = ServedText.of([TEXT])
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=MIN_WORDS, max_size=40).map(" ".join)
OTHERS = st.lists(st.text("wxyzé漢", min_size=1, max_size=4), max_size=40).map(" ".join)


@pytest.mark.parametrize(
    "wrapped",
    [
        TEXT,
        TEXT.upper(),
        TEXT.replace("\n", "\r\n> "),
        TEXT.replace(" ", "\u00a0"),
        " ** ".join(TEXT.split()),
    ],
)
def test_case_and_what_stands_between_words_do_not_count(wrapped):
    assert SERVED.mask(f"<<{wrapped}>>") in (f"<<{MASK}>>", f"<<{MASK}.>>")


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "Zuerst Ä, dann Ö und Ü: Straße für Straße, bis Müller grüßt.",
        "支払いを確認してから領収書を送る",
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_in_json_it_is_the_same(text, ascii_only):
    answer = json.dumps({"results": [{"instructions": text}]}, ensure_ascii=ascii_only)
    masked = ServedText.of([text]).mask(answer)
    assert masked.count(MASK) == 1
    assert len(list(words(masked))) == 2 + len(list(words(MASK)))


def test_in_json_in_json_it_is_the_same():
    answer = json.dumps({"content": json.dumps({"results": [{"instructions": TEXT}]})})
    assert SERVED.mask(answer).count(MASK) == 1
    assert "receipt" not in SERVED.mask(answer)


def test_what_is_said_around_it_stays():
    assert SERVED.mask(f"I read this: {TEXT} And then I did something else.") == (
        f"I read this: {MASK}. And then I did something else."
    )


def test_a_part_is_recognised_and_a_few_words_are_not():
    assert SERVED.mask("it said charge it, then send the receipt to the customer") == f"it said {MASK}"
    assert SERVED.mask("then send the receipt to the customer") == "then send the receipt to the customer"


def test_what_was_changed_stays():
    changed = "Charge it, then NEVER send the receipt, and tell the customer."
    assert SERVED.mask(changed) == changed


def test_nothing_served_masks_nothing():
    assert not ServedText()
    assert ServedText.of(["too short to know"]).fingerprints == frozenset()
    assert ServedText().mask(TEXT) == TEXT


@given(WORDS, OTHERS, OTHERS)
def test_a_served_text_is_masked_between_any_others(served, before, after):
    text = f"{before} | {served} | {after}"
    assert ServedText.of([served]).mask(text) == f"{before} | {MASK} | {after}"


@given(WORDS, OTHERS)
def test_other_texts_are_never_touched(served, other):
    assert ServedText.of([served]).mask(other) == other


@given(st.lists(st.text(), max_size=4), st.text())
def test_of_any_text_spans_are_in_order_and_apart_and_the_rest_is_kept(served, text):
    known = ServedText.of([*served, text])
    spans = known.spans(text)
    places = [place for span in spans for place in span]
    assert places == sorted(places)
    assert all(start < end for start, end in spans)
    ends, starts = [0, *places[1::2]], [*places[::2], len(text)]
    kept = [text[start:end] for start, end in zip(ends, starts, strict=True)]
    assert known.mask(text) == MASK.join(kept)
    assert len(spans) == (len(list(words(text))) >= MIN_WORDS)


@given(WORDS, OTHERS)
def test_masking_again_changes_nothing(served, other):
    known = ServedText.of([served])
    once = known.mask(f"{other} {served} {served} {other}")
    assert known.mask(once) == once
