"""How good a ranking is, by the grades of what is relevant. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return the discounted gain of the first `depth` of a ranking, as a share of the best there can be.

    The gain is the grade itself, discounted by log2(rank + 1), as `trec_eval` has it. Grades are above 0.
    """
    best = _gain(sorted(grades.values(), reverse=True)[:depth])
    return _gain(grades.get(item, 0.0) for item in ranked[:depth]) / best


def recall(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return the share of the relevant that stands among the first `depth` of a ranking."""
    return len(grades.keys() & set(ranked[:depth])) / len(grades)


def _gain(grades: Iterable[float]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
