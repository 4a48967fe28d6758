"""The edit budget: the whole table of the reference."""

from __future__ import annotations

import pytest

from skills.evolution.budget import BudgetRule, edit_budget

# Rows: experiences worth avoiding; columns: experiences worth learning, 0 to 9.
TABLE = {
    0: [0, 2, 2, 3, 3, 4, 4, 5, 5, 6],
    1: [2, 3, 3, 4, 4, 5, 5, 6, 6, 6],
    2: [3, 4, 4, 5, 5, 6, 6, 6, 6, 6],
    3: [4, 5, 5, 6, 6, 6, 6, 6, 6, 6],
    4: [5, 6, 6, 6, 6, 6, 6, 6, 6, 6],
    5: [6, 6, 6, 6, 6, 6, 6, 6, 6, 6],
}


@pytest.mark.parametrize("avoid", TABLE)
def test_table(avoid):
    assert [edit_budget(avoid=avoid, learn=learn) for learn in range(10)] == TABLE[avoid]


@pytest.mark.parametrize("avoid", [6, 20, 50])
@pytest.mark.parametrize("learn", [0, 9, 50])
def test_beyond_the_table_the_maximum_holds(avoid, learn):
    assert edit_budget(avoid=avoid, learn=learn) == 6


def test_nothing_to_learn_from_is_the_minimum_whatever_the_base():
    assert edit_budget(avoid=0, learn=0, rule=BudgetRule(base=5, minimum=0)) == 0
    assert edit_budget(avoid=0, learn=0, rule=BudgetRule(minimum=2)) == 2


def test_constants_are_passed_in():
    rule = BudgetRule(base=0, per_avoid=0.25, per_learn=0.25, minimum=1, maximum=3)
    assert [edit_budget(avoid=n, learn=n, rule=rule) for n in (1, 2, 3, 4, 5, 9)] == [1, 1, 2, 2, 3, 3]
