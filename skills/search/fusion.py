"""Fusing ranked lists by reciprocal rank and by how much each list can tell. Pure.

Scores of different lanes have no common measure, so an item gets from each list that holds it

    weight · sharpness · share / (k + rank)

and its fused score is the sum. A small k lets the head of each list weigh more. The share, at most 1, is how
much of its list's best score an item has: a skill with every word of a query is more than a rank ahead of one
with the commonest of them. Where scores have no zero, as cosine similarities, the list's last score
stands for it, and counts `FLOOR`, since it may be near to the best. The sharpness is less than 1 for a list
whose `SHARP_AT`-th item is about as good as its first: that is what a lane gives that does not understand the
question, and it shall not outvote one that does.

Measured with E5 on eight sets of tools, skills, packages and docstrings: three equal lists by reciprocal rank
alone were on three sets more than 0.01 (nDCG@10) below the better lane, on one by 0.25. So, with 0.3 for name
and description, they are 0.06 below it on that one, which asks for headings word by word, and on all others
from 0.01 below to 0.05 above it, on average 0.03. Without name and description these would be higher still,
but what is asked with a log around it is found later: mean reciprocal rank 0.39 in place of 0.58.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

FLOOR = 0.3
SHARP_AT = 10
BLUNT = 0.8
"""What a list loses of its weight whose first items are all alike."""


@dataclass(frozen=True, kw_only=True)
class RankedList:
    """What a lane found: items with its scores, best first and without repetition.

    `weight` is how often it counts, 0 for nothing. `has_zero` tells that a score of 0 would be no match.
    """

    items: Sequence[tuple[str, float]]
    weight: float = 1.0
    has_zero: bool = True


def fuse(lists: Sequence[RankedList], *, k: int) -> list[tuple[str, float]]:
    """Return every item of the lists that weigh, with its fused score.

    Best first; of equal scores the smaller item comes first.
    """
    scores: dict[str, float] = defaultdict(float)
    for ranked in lists:
        if not ranked.weight or not ranked.items:
            continue
        shares = _shares([score for _, score in ranked.items], has_zero=ranked.has_zero)
        tenth = shares[SHARP_AT - 1] if len(shares) >= SHARP_AT else 0.0
        weight = ranked.weight * (1 - BLUNT * tenth)
        for rank, ((item, _), share) in enumerate(zip(ranked.items, shares, strict=True), start=1):
            scores[item] += weight * share / (k + rank)
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _shares(scores: Sequence[float], *, has_zero: bool) -> list[float]:
    """Return how much of the best score each one is."""
    best, last = scores[0], 0.0 if has_zero else scores[-1]
    span = best / 2 - last / 2  # halved, as no two numbers are too far apart for
    if span <= 0:
        return [1.0] * len(scores)
    shares = [min(1.0, max(0.0, (score / 2 - last / 2) / span)) for score in scores]
    return shares if has_zero else [FLOOR + (1 - FLOOR) * share for share in shares]
