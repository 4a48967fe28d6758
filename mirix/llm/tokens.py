"""About how many tokens a text has, where nobody has counted them. Pure.

A token is four letters of an English text, and a character of a Chinese one; where they are mixed, or of
another script, in between. Rather too many than too few.
"""

from __future__ import annotations

from math import ceil


def about_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return about_tokens_of(characters=len(text), octets=len(text.encode(errors="replace")))


def about_tokens_of(*, characters: int, octets: int) -> int:
    """Return the same of a text of which only the length is known, in characters and in octets of UTF-8."""
    return ceil((2 * characters + 3 * max(0, octets - characters)) / 8)
