"""Quotes found again in the text they were taken from, for highlighting. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from mirix.text import fold


@dataclass(frozen=True)
class Piece:
    """A part of a text, marked where a quote stands."""

    text: str
    marked: bool = False
    stands_for: str = ""
    """`medium` where the text stands for an image or a file; `cut` where it says what is gone."""


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A text around a quote; `quote` is empty when the quote does not stand in it."""

    before: str
    quote: str
    after: str
    starts_text: bool
    ends_text: bool


STAND_INS = re.compile(
    r"(?P<medium>\[(?:image|audio|video|file|document)(?:: [^\]\n]{1,600})?\])"
    r"|(?P<cut>… \[truncated, \d+ characters in all\]$)"
)
"""What extraction and the cap leave in a text."""


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return where `quote` stands in `text`, compared as evidence is: NFKC, white space folded."""
    if not (wanted := fold(quote)):
        return None
    if (start := text.find(quote.strip())) >= 0:
        return start, start + len(quote.strip())
    folded, origins = _folded(text)
    start = folded.find(wanted)
    if start < 0:
        return None
    return origins[start], origins[start + len(wanted) - 1] + 1


def _folded(text: str) -> tuple[str, list[int]]:
    """Return `text` folded, and for each of its characters the position it came from."""
    letters: list[str] = []
    origins: list[int] = []
    for position, character in enumerate(text):
        for letter in unicodedata.normalize("NFKC", character):
            if not letter.isspace():
                letters.append(letter)
            elif letters and letters[-1] != " ":
                letters.append(" ")
            else:
                continue
            origins.append(position)
    return "".join(letters), origins


def mark(text: str, quotes: Iterable[str]) -> list[Piece]:
    """Cut `text` into pieces, every place where one of the quotes stands marked; overlaps are one mark."""
    spans = sorted(span for quote in quotes if (span := find_quote(text, quote)))
    pieces: list[Piece] = []
    position = 0
    for start, end in _merged(spans):
        if start > position:
            pieces.append(Piece(text[position:start]))
        pieces.append(Piece(text[start:end], marked=True))
        position = end
    if position < len(text) or not pieces:
        pieces.append(Piece(text[position:]))
    return pieces


def mark_word(text: str, word: str) -> list[Piece]:
    """Cut `text` into pieces, every place where `word` stands in any case marked."""
    pieces: list[Piece] = []
    position = 0
    for found in re.finditer(re.escape(word), text, re.IGNORECASE):
        if found.start() > position:
            pieces.append(Piece(text[position : found.start()]))
        pieces.append(Piece(found.group(), marked=True))
        position = found.end()
    return [*pieces, Piece(text[position:])] if position < len(text) or not pieces else pieces


def with_stand_ins(pieces: Iterable[Piece]) -> list[Piece]:
    """Cut the pieces that are not marked further, where something stands for what is not in the text."""
    found: list[Piece] = []
    for piece in pieces:
        found += [piece] if piece.marked else _stand_ins(piece.text)
    return found


def _stand_ins(text: str) -> list[Piece]:
    pieces: list[Piece] = []
    position = 0
    for found in STAND_INS.finditer(text):
        if found.start() > position:
            pieces.append(Piece(text[position : found.start()]))
        pieces.append(Piece(found.group(), stands_for=str(found.lastgroup)))
        position = found.end()
    return [*pieces, Piece(text[position:])] if position < len(text) or not pieces else pieces


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def excerpt(text: str, quote: str, around: int = 240) -> Excerpt:
    """Return the quote with about `around` characters on both sides, cut at words.

    Where the quote is not in the text, the head of the text is `before`.
    """
    span = find_quote(text, quote)
    if span is None:
        head, rest = _head(text, 2 * around)
        return Excerpt(before=head, quote="", after="", starts_text=True, ends_text=not rest)
    before, after = text[: span[0]], text[span[1] :]
    tail, cut = _head(before[::-1], around)
    head, rest = _head(after, around)
    return Excerpt(
        before=tail[::-1],
        quote=text[span[0] : span[1]],
        after=head,
        starts_text=not cut,
        ends_text=not rest,
    )


def _head(text: str, limit: int) -> tuple[str, str]:
    """Cut `text` at a word after at most `limit` characters; return both parts."""
    if len(text) <= limit:
        return text, ""
    cut = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    cut = cut if cut > limit // 2 else limit
    return text[:cut], text[cut:]
