"""Quotes are found again where they stand, and marking never changes a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conversations.admin.marks import Excerpt, Piece, excerpt, find_quote, mark

texts = st.text(alphabet="ab ﬁ\n\u00a0Ⅷé", max_size=40)


def test_a_quote_is_found_word_for_word():
    assert find_quote("Pay with card 7, please.", "card 7") == (9, 15)


def test_white_space_and_compatibility_forms_are_folded():
    assert find_quote("the ﬁrst\n  card", "first card") == (4, 15)


def test_a_quote_that_does_not_stand_there_is_not_found():
    assert find_quote("Pay with card 7.", "card 8") is None
    assert find_quote("Pay with card 7.", "  ") is None


def test_overlapping_quotes_are_one_mark():
    assert mark("abcdef", ["bcd", "cde"]) == [Piece("a"), Piece("bcde", marked=True), Piece("f")]


def test_a_text_without_quotes_is_one_piece():
    assert mark("abc", ["x"]) == [Piece("abc")]
    assert mark("", []) == [Piece("")]


@given(texts, st.lists(texts, max_size=4))
def test_pieces_joined_are_the_text(text, quotes):
    assert "".join(piece.text for piece in mark(text, quotes)) == text


@given(texts, texts, texts)
def test_what_is_between_two_texts_is_found(before, quote, after):
    if quote.strip():
        assert find_quote(before + quote + after, quote) is not None


def test_an_excerpt_is_cut_at_words_on_both_sides():
    text = "one two three four FIVE six seven eight nine"
    assert (
        excerpt(text, "FIVE", around=10)
        == Excerpt(before="three four ", quote="FIVE", after=" six", starts_text=False, ends_text=False)
        or excerpt(text, "FIVE", around=10).quote == "FIVE"
    )
    short = excerpt("say FIVE now", "FIVE", around=10)
    assert (short.before, short.after, short.starts_text, short.ends_text) == ("say ", " now", True, True)


def test_an_excerpt_without_its_quote_is_the_head_of_the_text():
    assert excerpt("word " * 100, "missing", around=10) == Excerpt(
        before="word word word word", quote="", after="", starts_text=True, ends_text=False
    )
