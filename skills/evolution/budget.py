"""The edit budget: how many operations a run may write, from how much it has to learn. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BudgetRule:
    """The constants of the budget; the defaults are the original's."""

    base: float = 1.0
    per_avoid: float = 1.0
    per_learn: float = 0.5
    minimum: int = 0
    maximum: int = 6


def edit_budget(*, avoid: int, learn: int, rule: BudgetRule = BudgetRule()) -> int:
    """Return the number of operations for `avoid` and `learn` experiences, both types of a run's batch.

    `base + per_avoid · avoid + per_learn · learn`, half rounded up, clamped to minimum and maximum;
    without any experience it is the minimum.
    """
    if avoid + learn == 0:
        return rule.minimum
    raw = rule.base + rule.per_avoid * avoid + rule.per_learn * learn
    return max(rule.minimum, min(rule.maximum, math.floor(raw + 0.5)))
