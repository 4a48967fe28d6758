"""Values and words of a transcript as they stand in a lesson."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.distillation.advice import avoid_all, contrast, do, do_all, sent
from skills.distillation.changes import ABSENT, Change
from skills.distillation.wording import (
    exact,
    inert,
    listing,
    number,
    paragraph,
    pattern_of,
    said,
    title,
    value,
)


def test_values_are_code_on_one_line():
    assert value("acc_11") == "`acc_11`"
    assert value("") == "an empty text"
    assert value(25) == "`25`"
    assert exact("25") == '`"25"`'
    assert value({"a": [1, None]}) == '`{"a": [1, null]}`'
    assert value("two\nlines `x`") == "`two lines 'x'`"


def test_long_values_keep_both_ends():
    assert value("abcdefghij" * 30, 40) == "`abcdefghijabcdefghijabcdef … jabcdefghij`"
    assert value([{"id": number} for number in range(100)], 40) == '`[{"id": 0}, … 98 more …, {"id": 99}]`'


def test_words_of_others_stand_in_quotation_marks_of_which_they_cannot_break_out():
    assert said("he said “no”\nand left") == "“he said 'no' and left”"


@pytest.mark.parametrize(
    ("message", "arguments", "pattern"),
    [
        (
            "flight HAT030 not available on date 2024-05-13",
            {"flights": [{"no": "HAT030", "date": "2024-05-13"}]},
            "flight … not available on date …",
        ),
        ("date 'Friday' is no date", {"date": "Friday"}, "date '…' is no date"),
        ("balance is not enough", {"cabin": "balance"}, "balance is not enough"),
        ("no order ord_99817", {}, "no order …"),
        ("no order #A-1; ids look like A-12345", {"id": "#A-1"}, "no order …; ids look like A-12345"),
        ("sqlite3.OperationalError: no such table", {}, "sqlite3.OperationalError: no such table"),
        ("jo@mail.example is unknown", {}, "… is unknown"),
    ],
)
def test_the_kind_of_an_error_is_what_stays_without_the_values_of_the_call(message, arguments, pattern):
    assert pattern_of(message, arguments) == pattern


def test_only_the_quoted_words_of_a_title_are_shortened():
    short = title("When `pay` says ", "no " * 60, ", wait")
    assert short.startswith("When `pay` says “no no")
    assert short.endswith("…”, wait")
    assert len(short) <= 120


def test_lists_numbers_and_paragraphs_are_written_out():
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert [number(count, "call") for count in (0, 1, 2, 12)] == [
        "no calls",
        "one call",
        "two calls",
        "12 calls",
    ]
    assert paragraph("one", "", "two?", "she said: “three.”") == "One. Two? She said: “three.”"


@pytest.mark.parametrize(
    ("change", "advice", "seen"),
    [
        (Change("limit", "25", 25), "pass `limit` as a number", '`limit` was `25` instead of `"25"`'),
        (Change("note", ABSENT, "x"), "add `note`", "`note` was given as `x`"),
        (Change("note", "x", ABSENT), "leave out `note`", "`note` (`x`) was left out"),
        (
            Change("a.day", "1/2/2025", "2025-02-01"),
            "write `day` as YYYY-MM-DD",
            "`a.day` was `2025-02-01` instead of `1/2/2025`",
        ),
        (Change("cur", "eur", "EUR"), "write `cur` as `EUR`", "`cur` was `EUR` instead of `eur`"),
        (Change("id", "417", "A-417"), "give `id` with `A-` in front", "`id` was `A-417` instead of `417`"),
        (Change("n", 500, 100), "lower `n` to `100`", "`n` was `100` instead of `500`"),
        (
            Change("to", ["a", "b"], ["b"]),
            "take `a` out of `to`",
            "`to` had one entry instead of two: `b` stayed, while `a` was left out",
        ),
        (
            Change("text", "a\n b", "a\n  b"),
            "mind the white space in `text`",
            "`text` was the same text with other white space: `b` began with two blanks instead of one blank",
        ),
        (Change("card_id", "c1x", "c2x"), "use another `card_id`", "`card_id` was `c2x` instead of `c1x`"),
        (
            Change("tag", "latest", "v2.1"),
            "change `tag` (here to `v2.1`)",
            "`tag` was `v2.1` instead of `latest`",
        ),
    ],
)
def test_a_change_in_words(change, advice, seen):
    assert do(change) == advice
    assert contrast(change) == seen


def test_changes_of_one_kind_are_told_together_and_many_are_counted():
    assert do_all([Change("a", ABSENT, 1), Change("b", ABSENT, 2)]) == "add `a` and `b`"
    assert do_all([Change(name, "x\ny z", "q\nw e r") for name in "abcde"]) == "change five arguments"
    assert sent([Change("a", 1, 2), Change("b", ABSENT, 2)]) == "with `a=1` and without `b`"


@given(text=st.text(max_size=400), limit=st.integers(20, 200))
def test_any_text_becomes_one_inert_line(text, limit):
    for shown in (inert(text, limit), said(text, limit), value(text, limit), exact(text, limit)):
        assert len(shown) <= limit + 20
        assert len(shown.splitlines()) <= 1
        assert shown.count("`") in (0, 2)


def test_a_renamed_argument_is_told_as_one_change():
    changes = [Change("city", "Rome", ABSENT), Change("location", ABSENT, "Rome")]
    assert do_all(changes) == "pass `location` instead of `city`"
    assert avoid_all(changes, "weather") == "pass `city` to `weather`"


def test_of_long_texts_only_the_words_that_differ_are_shown():
    before = "SELECT count(*) FROM order WHERE month = '2025-05' AND state = 'open'"
    change = Change("query", before, before.replace("order", "orders"))
    assert contrast(change) == "`query` had `FROM orders WHERE` where it had had `FROM order WHERE`"
