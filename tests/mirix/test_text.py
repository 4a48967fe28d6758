"""Text hygiene at the door, and the small text tools that every room shares."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix.text import clean_json, clean_text, fold, is_blank, shorten, slugify, truncate, visible

any_text = st.text(st.characters(exclude_categories=()))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("a\x00b", "ab"),
        ("a\ud83d b", "a\ufffd b"),
        ("e\u0301", "é"),
        ("e\x00\u0301", "é"),
        ("tab\tline\n\u202eflipped", "tab\tline\n\u202eflipped"),
    ],
)
def test_clean_text(raw, clean):
    assert clean_text(raw) == clean


@given(any_text)
def test_clean_text_can_always_be_stored_and_is_stable(text):
    clean = clean_text(text)
    assert "\x00" not in clean
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert clean_text(clean) == clean


def test_clean_json_reaches_keys_and_nested_values():
    assert clean_json({"k\x00": ["\ud800", {"x": float("nan")}, (1, float("inf"))]}) == {
        "k": ["\ufffd", {"x": None}, [1, None]]
    }


@given(any_json)
def test_clean_json_is_strict_json(value):
    text = json.dumps(clean_json(value), allow_nan=False, ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ("", True),
        (" \n\t\u00a0\u3000", True),
        ("\u200b\u2060\ufeff", True),  # zero width
        ("\u3164\u115f\uffa0", True),  # letters by name, which are drawn as nothing
        ("\u2800", True),  # a Braille cell without a dot
        ("\u0301", True),  # an accent on nothing
        ("\ue000", True),  # of private use
        ("\u200ba", False),
        ("e\u0301", False),
        (".", False),
        ("是", False),
        ("❤\ufe0f", False),
    ],
)
def test_blank_is_what_a_person_sees_nothing_of(text, blank):
    assert is_blank(text) is blank


@given(any_text)
def test_what_is_blank_stays_so_with_white_space_around_it(text):
    assert is_blank(f" {text}\n") is is_blank(text)


def test_truncate_leaves_a_text_within_the_limit_alone():
    assert truncate("x" * 50, 50) == ("x" * 50, False)


def test_truncate_marks_the_cut_and_names_the_full_length():
    cut, was_cut = truncate("x" * 51, 50)
    assert was_cut
    assert cut == "x" * 15 + "… [truncated, 51 characters in all]"


@given(any_text, st.integers(0, 80))
def test_truncate_never_exceeds_the_limit(text, limit):
    cut, was_cut = truncate(text, limit)
    assert len(cut) <= limit
    assert was_cut == (len(text) > limit)


def test_fold_makes_quotes_comparable_and_keeps_case():
    assert fold(" Not \u00a0enough\n\tseats ﬁle ") == "Not enough seats file"


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("short", 10, "short"),
        ("two\n lines ", 20, "two lines"),
        ("one two three four", 12, "one two…"),
        ("unbreakable-word-here", 10, "unbreakab…"),
    ],
)
def test_shorten(text, limit, short):
    assert shorten(text, limit) == short


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Deploy the App!", "deploy-the-app"),
        ("How-to: fix (v2)", "how-to-fix-v2"),
        ("snake_case name", "snake-case-name"),
        ("a - b -- c", "a-b-c"),
        ("-lead trail-", "lead-trail"),
        ("C++ build", "c-build"),
        ("Ünïcode Café déjà", "unicode-cafe-deja"),
        ("日本語 手順", ""),
        ("!!!", ""),
        ("", ""),
        ("word " * 20, "word-word-word-word-word-word-word-word-word-word-word-word"),
        ("x" * 70, "x" * 60),
    ],
)
def test_slugify(text, slug):
    assert slugify(text) == slug


@given(any_text, st.integers(1, 64))
def test_a_slug_is_empty_or_valid(text, limit):
    slug = slugify(text, limit)
    assert len(slug) <= limit
    assert slug == "" or re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert slugify(slug, limit) == slug


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext é 漢 👩‍💻", "plain\n\ttext é 漢 👩‍💻"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("over\rwritten", "over\\rwritten"),
        ("\u202etxet\u200b\U000e0041", "\\u202etxet\\u200b\\ue0041"),
    ],
)
def test_visible_spells_out_what_cannot_be_seen(text, shown):
    assert visible(text) == shown
