"""Recognising text by fingerprints of its words, wherever it stands and however it is wrapped. Pure.

A fingerprint is the hash of `SHINGLE_WORDS` words in a row. Words are compared in NFKC and folded case;
what stands between them does not count, so that a text is recognised in JSON, in Markdown or quoted. In
scripts without spaces each character is a word. A text of fewer than `MIN_WORDS` words is not recognised:
people say as much by themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from skills.search.analysis import UNSPACED

SHINGLE_WORDS = 5
MIN_SHINGLES = 4
MIN_WORDS = SHINGLE_WORDS + MIN_SHINGLES - 1
MASK = "[served by skill search]"
WORD = re.compile(rf"[{UNSPACED}]|[^\W_{UNSPACED}]+")
# Of JSON, and of JSON in JSON, where a line end is \n and a letter \u00e9: no words of their own.
ESCAPED = re.compile(
    r"\\+u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\+u(?P<code>[0-9a-fA-F]{4})|\\+[nrtbf]?"
)


class Word(NamedTuple):
    """A word as it is compared, and where it stands."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ServedText:
    """What was served: the fingerprints of it."""

    fingerprints: frozenset[bytes] = frozenset()

    @classmethod
    def of(cls, texts: Iterable[str]) -> ServedText:
        """Return the fingerprints of these texts."""
        return cls(frozenset(found for text in texts for found in shingles(list(words(text)))))

    def __bool__(self) -> bool:
        return bool(self.fingerprints)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where `text` repeats what was served, as (start, end), in order and apart from each other.

        That is where at least `MIN_SHINGLES` fingerprints in a row were served.
        """
        if not self.fingerprints:
            return []
        found = list(words(text))
        spans: list[tuple[int, int]] = []
        for first, last in _runs([shingle in self.fingerprints for shingle in shingles(found)]):
            start, end = found[first].start, found[last + SHINGLE_WORDS - 1].end
            if spans and start < spans[-1][1]:
                start = spans.pop()[0]
            spans.append((start, end))
        return spans

    def mask(self, text: str) -> str:
        """Return `text` with a marker in the place of each span that was served."""
        parts: list[str] = []
        position = 0
        for start, end in self.spans(text):
            parts += (text[position:start], MASK)
            position = end
        return "".join((*parts, text[position:]))


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text in order."""
    plain, places = _unescaped(text)
    for match in WORD.finditer(plain):
        folded = unicodedata.normalize("NFKC", match.group()).casefold()
        yield Word(folded, places[match.start()], places[match.end()])


def _unescaped(text: str) -> tuple[str, Sequence[int]]:
    """Return the text with escapes as what they stand for, and for each place in it that in the text."""
    if "\\" not in text:
        return text, range(len(text) + 1)
    parts: list[str] = []
    places: list[int] = []
    position = 0
    for match in ESCAPED.finditer(text):
        parts += (text[position : match.start()], _character(match))
        places += range(position, match.start() + 1)
        position = match.end()
    return "".join((*parts, text[position:])), [*places, *range(position, len(text) + 1)]


def _character(escape: re.Match[str]) -> str:
    if high := escape["high"]:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(escape["low"], 16) - 0xDC00)
    return chr(int(escape["code"], 16)) if escape["code"] else " "


def shingles(found: list[Word]) -> Iterator[bytes]:
    """Yield the fingerprint of each `SHINGLE_WORDS` words in a row."""
    texts = [word.text for word in found]
    for start in range(len(texts) - SHINGLE_WORDS + 1):
        joined = " ".join(texts[start : start + SHINGLE_WORDS])
        yield blake2b(joined.encode(errors="replace"), digest_size=8).digest()


def _runs(known: list[bool]) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of each run of at least `MIN_SHINGLES` that are known."""
    start = 0
    for place, is_known in enumerate([*known, False]):
        if not is_known:
            if place - start >= MIN_SHINGLES:
                yield start, place - 1
            start = place + 1
