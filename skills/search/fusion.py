"""Fusing ranked lists by reciprocal rank. Pure.

Scores of different lanes have no common measure, ranks do: an item's fused score is the sum of 1 / (k + rank)
over the lists that hold it. A small k lets the head of each list weigh more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence


def fuse(lists: Iterable[Sequence[str]], *, k: int) -> list[tuple[str, float]]:
    """Return every item of the lists, each best first and without repetition, with its fused score.

    Best first; of equal scores the smaller item comes first.
    """
    scores: dict[str, float] = defaultdict(float)
    for items in lists:
        for rank, item in enumerate(items, start=1):
            scores[item] += 1 / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
