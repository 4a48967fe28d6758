"""Whether a text may have something of what is erased. Pure.

Texts are made of words of lessons. A text that rests on lessons of several sessions may go on without some of
them only where it says nothing that these alone said: each word that it shares with them has to stand in what
remains as well. Stop words tell nothing. It errs on the side of erasing: what is refused for a common word is
written anew from what remains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mirix.text import strings_in
from skills.evolution.words import STOP_WORDS, words


def words_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the words of texts and of all that stands in JSON, keys included, that may tell something."""
    return frozenset(
        word
        for value in values
        for text in _texts(value)
        for word in words(text)
        if word not in STOP_WORDS and (len(word) > 1 or not word.isascii())
    )


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (str(value),)
    if isinstance(value, dict):
        return (*map(str, value), *(text for item in value.values() for text in _texts(item)))
    if isinstance(value, list | tuple):
        return (text for item in value for text in _texts(item))
    return strings_in(value)


def has_traces(values: Iterable[Any], *, erased: frozenset[str], kept: frozenset[str]) -> bool:
    """Return whether a text shares a word with what is erased that nothing which stays says."""
    return bool((words_of(values) & erased) - kept)
