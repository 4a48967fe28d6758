"""A difference line by line, for people to read beside each other or in one column. Pure.

Long stretches that both sides share are set apart, so that a page can fold them away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from mirix.phrases import spans_of
from skills.review.diffs import FieldDiff, Kind, Segment

CONTEXT_LINES = 3
"""So many lines stay around each change."""
MIN_FOLDED_LINES = 4


@dataclass(frozen=True)
class Piece:
    """A part of a line that stayed, came or went; `doubted` where it is one of the phrases to mark."""

    kind: Kind
    text: str
    doubted: bool = False


Line = tuple[Piece, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line before and after, None where that side has none; `both` are its pieces in one column."""

    left: Line | None
    right: Line | None
    both: Line

    @property
    def changed(self) -> bool:
        """Whether anything came or went."""
        return self.left is None or self.right is None or any(piece.kind != "equal" for piece in self.both)


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """Rows that follow each other; `folded` where all are unchanged and far from any change."""

    rows: tuple[Row, ...]
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One field's difference, ready for a page."""

    field: str
    stretches: tuple[Stretch, ...]
    added: int
    removed: int


def passage_of(diff: FieldDiff, doubted: Sequence[str] = ()) -> Passage:
    """Return a field's difference line by line, with what is doubted of the new text marked in it."""
    stretches = tuple(_folded(list(_rows(_pieces(diff, doubted)))))
    return Passage(field=diff.field, stretches=stretches, added=diff.added, removed=diff.removed)


def _pieces(diff: FieldDiff, doubted: Sequence[str]) -> Iterator[Piece]:
    """Cut the segments where a phrase of the new text begins and ends; one may lie in several."""
    edges = [edge for span in spans_of(diff.after, doubted) for edge in span]
    position = 0
    for segment in diff.segments:
        if segment.kind == "delete":
            yield Piece("delete", segment.text)
        else:
            yield from _cut(segment, position, edges)
            position += len(segment.text)


def _cut(segment: Segment, position: int, edges: Sequence[int]) -> Iterator[Piece]:
    end = position + len(segment.text)
    cuts = [position, *(edge for edge in edges if position < edge < end), end]
    for start, stop in pairwise(cuts):
        inside = sum(edge <= start for edge in edges) % 2 == 1
        yield Piece(segment.kind, segment.text[start - position : stop - position], inside)


def _rows(pieces: Iterator[Piece]) -> Iterator[Row]:
    """Put the lines of both sides beside each other; they meet again wherever both have a line's end."""
    block = _Block()
    for piece in pieces:
        if piece.kind == "equal" and block.begins_a_line:
            yield from block.rows()
            block = _Block()
        first, *rest = piece.text.split("\n")
        block.add(replace(piece, text=first))
        for text in rest:
            if piece.kind == "equal":
                yield from block.rows()
                block = _Block()
            else:
                block.end_line(piece.kind)
            block.add(replace(piece, text=text))
    if not block.is_empty:
        yield from block.rows()


class _Block:
    """Lines of both sides since they last met."""

    def __init__(self) -> None:
        self.left: list[list[Piece]] = [[]]
        self.right: list[list[Piece]] = [[]]
        self.both: list[list[Piece]] = [[]]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it, as behind the end of the last line."""
        return self.both == [[]]

    @property
    def begins_a_line(self) -> bool:
        """Whether both sides are at the begin of a line, and one has had others before."""
        columns = (self.left, self.right, self.both)
        return len(self.both) > 1 and not any(column[-1] for column in columns)

    def add(self, piece: Piece) -> None:
        if not piece.text:
            return
        self.both[-1].append(piece)
        if piece.kind != "insert":
            self.left[-1].append(piece)
        if piece.kind != "delete":
            self.right[-1].append(piece)

    def end_line(self, kind: Kind) -> None:
        (self.left if kind == "delete" else self.right).append([])
        self.both.append([])

    def rows(self) -> Iterator[Row]:
        """Yield the rows; the column of one shows what went before what came, each line by itself."""
        columns = [self.left, self.right, self.both]
        if self.begins_a_line:
            columns = [column[:-1] for column in columns]
        lines = zip_longest(*columns)
        for left, right, both in lines:
            yield Row(
                left=None if left is None else tuple(left),
                right=None if right is None else tuple(right),
                both=tuple(both or ()),
            )


def _folded(rows: list[Row]) -> Iterator[Stretch]:
    near = _near_a_change(rows)
    start = 0
    for position in range(1, len(rows) + 1):
        if position < len(rows) and near[position] == near[start]:
            continue
        part = tuple(rows[start:position])
        yield Stretch(rows=part, folded=not near[start] and len(part) >= MIN_FOLDED_LINES)
        start = position


def _near_a_change(rows: list[Row]) -> list[bool]:
    near = [False] * len(rows)
    for position, row in enumerate(rows):
        if row.changed:
            for place in range(
                max(0, position - CONTEXT_LINES), min(len(rows), position + CONTEXT_LINES + 1)
            ):
                near[place] = True
    return near
