"""How much of a context window texts take, and how many of a list fit into a part of it. Pure.

Tokens are estimated, since every model counts its own: one for each four bytes of UTF-8, rounded up. That is
near what models count for English and for code, and not below it for scripts whose characters take three
bytes each.
"""

from __future__ import annotations

from collections.abc import Iterable

BYTES_PER_TOKEN = 4


def estimate_tokens(*texts: str) -> int:
    """Return about how many tokens the texts take together."""
    size = sum(len(text.encode(errors="replace")) for text in texts)
    return -(-size // BYTES_PER_TOKEN)


def fitting(costs: Iterable[int], budget: int) -> int:
    """Return how many of a list fit into the budget from its first on; the first that does not ends it.

    What is ranked lower is never put in the place of what is too long: a list that is cut stays a ranking.
    """
    spent = count = 0
    for cost in costs:
        spent += cost
        if spent > budget:
            break
        count += 1
    return count
