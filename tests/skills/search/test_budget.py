"""What texts cost, and how many of a list a budget holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.search.budget import estimate_tokens, fitting

COSTS = st.lists(st.integers(0, 1_000))


@pytest.mark.parametrize(
    ("texts", "tokens"),
    [
        ((), 0),
        (("",), 0),
        (("a",), 1),
        (("abcd",), 1),
        (("abcde",), 2),
        (("ab", "cd"), 1),
        (("é" * 4,), 2),
        (("漢字漢字",), 3),
        (("🚀",), 1),
        (("\ud800",), 1),
    ],
)
def test_a_token_is_four_bytes_and_what_is_left_counts_as_one(texts, tokens):
    assert estimate_tokens(*texts) == tokens


@pytest.mark.parametrize(
    ("costs", "budget", "count"),
    [
        ([], 10, 0),
        ([10], 10, 1),
        ([11], 10, 0),
        ([4, 6, 1], 10, 2),
        ([4, 7, 1], 10, 1),
        ([0, 0], 1, 2),
    ],
)
def test_the_first_that_does_not_fit_ends_the_list(costs, budget, count):
    assert fitting(costs, budget) == count


@given(COSTS, st.integers(1, 5_000))
def test_what_fits_is_the_longest_beginning_within_the_budget(costs, budget):
    count = fitting(costs, budget)
    assert sum(costs[:count]) <= budget
    assert count == len(costs) or sum(costs[: count + 1]) > budget


@given(COSTS, st.integers(1, 2_000), st.integers(0, 2_000))
def test_a_larger_budget_never_holds_less(costs, budget, more):
    assert fitting(costs, budget) <= fitting(costs, budget + more)
