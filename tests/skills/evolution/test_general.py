"""From one session's words to anybody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.general import (
    leans_on_context,
    phrase_of,
    phrases_in,
    without_names,
    without_particulars,
    without_values,
)


@pytest.mark.parametrize(
    ("request_", "phrase"),
    [
        (
            "I need to change my flight back from Denver to Houston to be the quickest one on May 27.",
            "change my flight back to be the quickest one",
        ),
        ("Could you refund the second payment for order #LO-20418?", "refund the second payment"),
        (
            "I'd like to get a refund for the insurance I purchased.",
            "get a refund for the insurance I purchased",
        ),
        ("Please go ahead and upgrade my cabin class (HAT072).", "upgrade my cabin class"),
        ("We need a pickup at our Utrecht warehouse on 14 March.", "we need a pickup at our warehouse"),
        ("Can you track the package I sent through DHL-99812?", "track the package I sent"),
        (
            "I need some assistance with changing my upcoming reservation, please.",
            "changing my upcoming reservation",
        ),
        ("Long titles should be cut in notes/views.py.", "long titles should be cut"),
        ("I was charged twice for order #LO-20418.", "I was charged twice"),
        ("Cancel the order of my friend LO-20418 today.", "cancel the order of my friend today"),
        ("Yes, please.", ""),
        ("It is CHG-4471.", ""),
        ("", ""),
    ],
)
def test_phrases(request_, phrase):
    assert phrase_of(request_) == phrase


def test_a_request_of_several_sentences_puts_the_wish_first():
    request = "I was charged twice for order #LO-20418. Could you refund the second payment, please?"
    assert phrases_in(request) == ["refund the second payment", "I was charged twice"]
    assert phrases_in("Hello there! It is CHG-4471.") == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("gift card balance is not enough", "gift card balance is not enough"),
        (
            "sqlite3.OperationalError: no such table: invoice_line",
            "sqlite3.OperationalError: no such table: …",
        ),
        ("old_text was not found in notes/views.py", "old_text was not found in …"),
        ("No module named 'requests'", "No module named '…'"),
        ("total price is 4875, but paid 1625", "total price is …, but paid …"),
        ("reason is required, one of damaged, duplicate", "reason is required, one of damaged, duplicate"),
        ("404 Not Found", "404 Not Found"),
        ("the date must look like YYYY/MM/DD", "the date must look like …"),
        ("ids look like LO-12345", "ids look like LO-12345"),
    ],
)
def test_kinds_of_errors(error, kind):
    assert without_particulars(error) == kind


def test_values_and_names():
    text = "Ask Sofia Kim (sofia@mail.example, +1 555 010 9988) about order LO-20418 of May 3, 2024"
    assert without_values(text) == "Ask Sofia Kim (…) about order … of …"
    assert without_names(text) == "Ask … (…) about order … of …"


@given(st.text(max_size=200))
def test_any_text_gives_one_line_and_a_general_text_stays_as_it_is(text):
    phrase = phrase_of(text)
    assert len(phrase) <= 120
    assert "\n" not in phrase
    once = without_particulars(text)
    assert without_particulars(once) == once


@pytest.mark.parametrize(
    ("request_", "phrase"),
    [
        (
            "Could you please search for alternative flights for that segment?",
            "search for alternative flights",
        ),
        ("I'll take the window seat. Could you proceed?", "I'll take the window seat"),
        ("Please add one checked bag as well.", "add one checked bag as well"),
    ],
)
def test_what_points_back_is_cut_where_it_stands_at_the_end(request_, phrase):
    assert phrase_of(request_) == phrase
    assert not leans_on_context(phrase)


def test_a_phrase_that_points_back_leans_on_context():
    assert leans_on_context("restart it and look again")
    assert not leans_on_context("restart the payment service")
