"""Anchored replacements: what to put in the place of which words of a text. Pure.

The old text is looked up as it is, never as a pattern, and must stand in the text once; so must that of
every other replacement, and no two may touch the same words. All are looked up in the text as it was before
any of them. They apply all together or not at all, and what undoes them are replacements again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from mirix.text import fold, shorten

MAX_SHOWN_CHARS = 80
MAX_EQUAL_PAIRS = 100_000
MAX_PAIRS = 4_000_000
"""Past these, lines repeat so much, or are so many, that aligning takes too long: all count as changed."""


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """Some words of a text and what is to stand in their place, both as they are."""

    old: str
    new: str


class AnchorsRefused(Exception):
    """Replacements do not apply to a text; nothing was changed."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(" ".join(reasons))
        self.reasons = list(reasons)
        """A sentence for each replacement at fault, for whoever wrote it."""


@dataclass(frozen=True, order=True)
class _Span:
    """A passage of one text, from `start` up to `end`, and what stands for it in another one."""

    start: int
    end: int
    other: str


def apply(text: str, replacements: Iterable[Replacement]) -> str:
    """Return `text` with every replacement made; raises `AnchorsRefused` where one of them cannot be."""
    return _put_in(text, _spans(text, replacements), 0, len(text))


def undo(text: str, replacements: Iterable[Replacement]) -> list[Replacement]:
    """Return what makes `text` again of the text that `replacements` make of it.

    Raises `AnchorsRefused` as `apply` does.
    """
    shift, back = 0, []
    spans = _spans(text, replacements)
    for span in spans:
        start = span.start + shift
        back.append(_Span(start, start + len(span.other), text[span.start : span.end]))
        shift += len(span.other) - (span.end - span.start)
    return _anchored(_put_in(text, spans, 0, len(text)), back)


def between(before: str, after: str) -> list[Replacement]:
    """Return replacements of whole lines that make `after` of `before`; none where they are equal.

    Lines that did not change stand around a change only where it could not be found without them.
    """
    return _anchored(before, _differences(before, after))


def _spans(text: str, replacements: Iterable[Replacement]) -> list[_Span]:
    """Return where replacements apply, in the order of the text."""
    spans, reasons = [], []
    for replacement in replacements:
        if reason := _refusal(text, replacement.old):
            reasons.append(reason)
        else:
            start = text.find(replacement.old)
            spans.append(_Span(start, start + len(replacement.old), replacement.new))
    spans.sort()
    for one, other in pairwise(spans):
        if other.start < one.end or other.start == one.start:
            shown = [_shown(text[span.start : span.end]) for span in (one, other)]
            reasons.append(f"The old texts {shown[0]} and {shown[1]} overlap.")
    if reasons:
        raise AnchorsRefused(reasons)
    return spans


def _refusal(text: str, old: str) -> str:
    """Return why an old text does not name one place of a text; "" where it does."""
    if not old and text:
        return "The old text is empty: name the words that are to be replaced."
    first = text.find(old)
    if first < 0:
        spaced = fold(old).casefold()
        alike = " It differs in white space, case or kind of characters." * (
            bool(spaced) and spaced in fold(text).casefold()
        )
        return f"The old text {_shown(old)} is not there, letter by letter.{alike}"
    if old and text.find(old, first + 1) >= 0:
        return f"The old text {_shown(old)} is there more than once: name more of what stands around it."
    return ""


def _shown(text: str) -> str:
    return f"“{shorten(text, MAX_SHOWN_CHARS)}”"


def _put_in(text: str, spans: Sequence[_Span], start: int, end: int) -> str:
    """Return a passage of a text with what stands for its spans, in order and apart, in their place."""
    parts, position = [], start
    for span in spans:
        parts += [text[position : span.start], span.other]
        position = span.end
    return "".join([*parts, text[position:end]])


def _differences(before: str, after: str) -> list[_Span]:
    """Return the runs of lines of `before` that differ, with what stands for them in `after`."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    start = sum(map(len, old[:head]))
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    counts = Counter(new)
    if len(old) * len(new) > MAX_PAIRS or sum(counts[line] for line in old) > MAX_EQUAL_PAIRS:
        return [_Span(start, start + sum(map(len, old)), "".join(new))]
    spans = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        end = start + sum(map(len, old[i:j]))
        if tag != "equal":
            spans.append(_Span(start, end, "".join(new[k:m])))
        start = end
    return spans


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many equal lines two texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _anchored(text: str, spans: Sequence[_Span]) -> list[Replacement]:
    """Return replacements for spans of a text, each with so many lines around it that it stands there once.

    Spans whose lines come to touch become one replacement.
    """
    borders = [0]
    for line in text.splitlines(keepends=True):
        borders.append(borders[-1] + len(line))
    passages: list[tuple[int, int, list[_Span]]] = []
    for span in spans:
        start, end = _surrounded(text, span, borders)
        inside = [span]
        while passages and passages[-1][1] >= start:
            earlier, later, more = passages.pop()
            start, end, inside = min(start, earlier), max(end, later), [*more, *inside]
        passages.append((start, end, inside))
    return [
        Replacement(old=text[start:end], new=_put_in(text, inside, start, end))
        for start, end, inside in passages
    ]


def _surrounded(text: str, span: _Span, borders: Sequence[int]) -> tuple[int, int]:
    """Return where the lines begin and end that hold a span and stand in the text once."""
    first, last = bisect_right(borders, span.start) - 1, bisect_left(borders, span.end)
    lines = 1
    while _refusal(text, text[borders[first] : borders[last]]):
        first, last = max(0, first - lines), min(len(borders) - 1, last + lines)
        lines *= 2
    return borders[first], borders[last]
