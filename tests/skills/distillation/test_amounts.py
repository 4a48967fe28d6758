"""Errors that compare two numbers, one of which was sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.distillation.amounts import Comparison, compared
from skills.distillation.calls import pair_calls
from tests.skills.distillation.sessions import lessons, tool, turns

PARTS = {"payments": [{"id": "a", "amount": 500}, {"id": "b", "amount": 1125}]}


def comparison(arguments, error):
    (call,) = pair_calls(turns(tool("pay", arguments, f"Error: {error}")))
    return compared(call)


@pytest.mark.parametrize(
    ("arguments", "error", "remedy", "numbers"),
    [
        (
            PARTS,
            "payment amount does not add up, total price is 4875, but paid 1625",
            "make the sum of `amount` in `payments` equal to the total price it names before you call again",
            ["1625", "4875"],
        ),
        (
            {"lines": [10.5, 20.25]},
            "sum mismatch: invoice total: $40.00, lines: $30.75",
            "make the sum of `lines` equal to the invoice total it names before you call again",
            ["30.75", "40.00"],
        ),
        (
            {"amount": "1200"},
            "amount 1200 does not match 1,350",
            "make `amount` equal to the other number it names before you call again",
            ["1200", "1,350"],
        ),
        (
            {"hours": 48},
            "a range of 48 hours is too large, the maximum is 24",
            "keep `hours` within the limit it names",
            ["48"],
        ),
        (
            {"range": {"hours": 480}},
            "480 hours are too many, the maximum is 24",
            "keep `hours` within the limit it names",
            ["480"],
        ),
    ],
)
def test_what_must_hold_between_the_two_is_the_remedy(arguments, error, remedy, numbers):
    found = comparison(arguments, error)
    assert (found and found[0].remedy(), found and found[1]) == (remedy, numbers)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"page": 2}, "expected 3 columns, got 2"),  # a coincidence
        ({"page": 200}, "total of 200 items, 40 on 12 pages differ"),  # three numbers
        ({"cents": 400}, "balance 100, cents 400"),  # nothing says what must hold
        ({"cents": 400, "fee": 100}, "fee 100 and cents 400 do not match"),  # both were sent
        ({"cents": 400, "price": 400}, "400 does not match 500"),  # which of the two?
        ({"cents": 400}, "error 400: expected 500"),  # a status
        ({"no": "LO-400"}, "order LO-400 does not match 2024-05-13"),
        ({"deep": [[], {}]}, "total 400 does not match 500"),
        ({"cents": 400}, "total is wrong"),
    ],
)
def test_nothing_is_compared_where_something_else_may_be_meant(arguments, error):
    assert comparison(arguments, error) is None


def test_lessons_say_what_must_be_equal_whatever_the_numbers():
    first, second = (
        lessons(
            tool(
                "pay",
                {"payments": [{"amount": one}, {"amount": 5}]},
                f"Error: total price is 75, paid {one + 5}",
            )
        )[0]
        for one in (20, 30)
    )
    remedy = "make the sum of `amount` in `payments` equal to the total price it names before you call again"
    assert first.title == (
        "“total price is …, paid …” stopped `pay`: check the sum of `amount` in `payments` beforehand"
    )
    assert (
        "The message compares its total price with the sum of `amount` in `payments` as sent: "
        f"{remedy}." in first.content
    )
    assert first.details["named"] == ["payments[].amount"]
    assert first.details["error_pattern"] == second.details["error_pattern"] == "total price is …, paid …"
    assert first.details["compared"] == {
        "argument": "payments[].amount",
        "summed": True,
        "must": "equal",
        "against": "total price",
    }


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_data_of_any_shape_is_read_or_left(data):
    found = Comparison.from_data(data)
    assert found is None or Comparison.from_data(found.as_data()) == found


@given(st.text(), st.dictionaries(st.text(), st.integers() | st.floats() | st.lists(st.integers())))
def test_any_error_of_any_call_is_read(error, arguments):
    comparison(arguments, error + " total 1234 is not 12")
