"""Fusing ranked lists by reciprocal rank. Pure.

Scores of different lanes have no common measure, ranks do: an item's fused score is the sum of 1 / (k + rank)
over the lists that hold it. A small k lets the head of each list weigh more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


def fuse(
    lists: Sequence[Sequence[str]], *, k: int, weights: Sequence[float] | None = None
) -> list[tuple[str, float]]:
    """Return every item of the lists, each best first and without repetition, with its fused score.

    A list counts as often as its weight says, by default once; one of weight 0 counts for nothing. Best
    first; of equal scores the smaller item comes first.
    """
    scores: dict[str, float] = defaultdict(float)
    for items, weight in zip(lists, weights or [1.0] * len(lists), strict=True):
        for rank, item in enumerate(items, start=1):
            if weight:
                scores[item] += weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
