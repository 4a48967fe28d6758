"""Where some phrases stand in a text, for marking them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def spans_of(text: str, phrases: Iterable[str]) -> list[tuple[int, int]]:
    """Return where the phrases stand, in order; places that overlap or touch are one."""
    found = sorted(span for phrase in phrases if phrase for span in _places(text, phrase))
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def cut(text: str, phrases: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Cut a text into (part, whether it is one of the phrases); the parts joined are the text."""
    position = 0
    for start, end in spans_of(text, phrases):
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text):
        yield text[position:], False


def _places(text: str, phrase: str) -> Iterator[tuple[int, int]]:
    start = text.find(phrase)
    while start >= 0:
        yield start, start + len(phrase)
        start = text.find(phrase, start + len(phrase))
