"""What the benchmark says of a ranking, against values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.ranking import ndcg, recall

# 1/log2(rank + 1) of the first ranks.
SECOND, THIRD, FOURTH = 0.6309297535714575, 0.5, 0.43067655807339306


@pytest.mark.parametrize(
    ("ranked", "grades", "expected"),
    [
        (["a", "b"], {"a": 1}, 1.0),
        (["b", "a"], {"a": 1}, SECOND),
        (["b", "c", "d", "a"], {"a": 1}, FOURTH),
        (["b", "c"], {"a": 1}, 0.0),
        ([], {"a": 1}, 0.0),
        # Two of grade 1, at ranks 1 and 3; at best they would be at 1 and 2.
        (["a", "x", "b"], {"a": 1, "b": 1}, (1 + THIRD) / (1 + SECOND)),
        # Grades weigh as they stand: 2 at rank 2, 1 at rank 1.
        (["b", "a"], {"a": 2, "b": 1}, (1 + 2 * SECOND) / (2 + SECOND)),
        # One of three was found.
        (["a"], {"a": 3, "b": 2, "c": 1}, 3 / (3 + 2 * SECOND + THIRD)),
    ],
)
def test_ndcg_is_the_discounted_gain_as_a_share_of_the_best(ranked, grades, expected):
    assert ndcg(ranked, grades, 10) == pytest.approx(expected, abs=1e-12)


def test_ndcg_looks_no_further_than_its_depth():
    assert ndcg(["x", "y", "a"], {"a": 1}, 2) == 0.0
    # Three are relevant, at best two of them stand above the depth.
    assert ndcg(["a", "b"], {"a": 1, "b": 1, "c": 1}, 2) == 1.0


@pytest.mark.parametrize(
    ("ranked", "grades", "expected"),
    [
        (["a", "b", "c", "d", "e", "f"], {"e": 1}, 1.0),
        (["a", "b", "c", "d", "e", "f"], {"f": 1}, 0.0),
        (["a", "x", "b"], {"a": 3, "b": 1, "c": 1, "d": 1}, 0.5),
        ([], {"a": 1}, 0.0),
    ],
)
def test_recall_is_the_share_of_the_relevant_above_the_depth(ranked, grades, expected):
    assert recall(ranked, grades, 5) == expected


@given(
    st.permutations("abcdefgh"),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3), min_size=1),
)
def test_the_best_order_scores_one_and_no_other_more(ranked, grades):
    best = sorted(ranked, key=lambda item: -grades.get(item, 0))
    assert ndcg(best, grades, 8) == pytest.approx(1.0)
    assert 0.0 <= ndcg(ranked, grades, 8) <= 1.0 + 1e-9
