"""What stays of a text or a session that is too long. Pure.

Of a text the middle goes, but for the words that tell something. Of a session the turns in the middle go, but
for those that tell something: where somebody corrects or confirms, where the assistant takes something back,
and where a tool fails, each with the turn before it, which it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from skills.distillation.calls import pair_calls
from skills.distillation.errors import Failure
from skills.distillation.hearing import Signal, listen
from skills.distillation.types import TranscriptTurn

MARKER_CHARS = 48
"""At most so many characters does the marker of a cut take."""
MIN_CUT_CHARS = 4 * MARKER_CHARS
"""A text that is cut shorter than this keeps its beginning alone."""
RANK = {Signal.CORRECTION: 0, Signal.CONFIRMATION: 1, Signal.OWN_CORRECTION: 2}
ERROR, REPEATED_ERROR = 3, 4


@dataclass(frozen=True, kw_only=True)
class Spot:
    """Where a turn tells something, and how much that counts: the lower the rank, the more."""

    rank: int
    start: int
    end: int


def spots(turns: Sequence[TranscriptTurn], failures: Sequence[Failure | None]) -> dict[int, Spot]:
    """Return where turns fail, correct or confirm, by their place in the session."""
    found: dict[int, Spot] = {}
    known: set[str] = set()
    for place, (turn, failed) in enumerate(zip(turns, failures, strict=True)):
        if failed is not None:
            kind = re.sub(r"\d+", "0", failed.message)
            rank = REPEATED_ERROR if kind in known else ERROR
            known.add(kind)
            found[place] = _spot(rank, turn.content, failed.quote)
    places = {id(turn): place for place, turn in enumerate(turns)}
    for heard in listen(turns, pair_calls(turns)):
        place = places[id(heard.turn)]
        found[place] = _spot(RANK[heard.signal], heard.turn.content, heard.hit.sentence.text)
    return found


def _spot(rank: int, content: str, words: str) -> Spot:
    start = max(0, content.find(words))
    return Spot(rank=rank, start=start, end=min(len(content), start + len(words)))


def shortened(text: str, limit: int, spot: Spot | None = None) -> str:
    """Return a text of at most `limit` characters: its ends and the words at `spot`, markers between."""
    if len(text) <= limit:
        return text
    if limit < MIN_CUT_CHARS:
        return text[: max(0, limit - 1)] + "…"[:limit]
    room = limit - MARKER_CHARS
    pieces = [(0, room // 2), (len(text) - room + room // 2, len(text))]
    if spot and spot.end > pieces[0][1] and spot.start < pieces[1][0]:
        third = (limit - 2 * MARKER_CHARS) // 3
        start = spot.start - max(0, third - (spot.end - spot.start)) // 2
        start = min(max(start, third), len(text) - 2 * third)
        pieces = [(0, third), (start, start + third), (len(text) - third, len(text))]
    return _joined(text, pieces)


def _joined(text: str, pieces: Sequence[tuple[int, int]]) -> str:
    parts = [text[: pieces[0][1]]]
    for (_, before), (start, end) in pairwise(pieces):
        if start > before:
            parts.append(f"\n[{start - before:,} characters left out]\n")
        parts.append(text[max(start, before) : end])
    return "".join(parts)


@dataclass
class Choice:
    """Turns that are kept, within a budget; each run of missing turns in a section costs a line as well."""

    sizes: Sequence[int]
    """What each turn takes, header and line end included."""
    overheads: Sequence[int]
    """What of that is not the turn's own words."""
    first_new: int
    """Where the second section begins: the new turns."""
    room: int
    gap: int
    kept: dict[int, int] = field(default_factory=dict)
    """How many characters each kept turn may take, by its place."""

    def __post_init__(self) -> None:
        self.room -= self.gap * ((self.first_new > 0) + (self.first_new < len(self.sizes)))

    def add(self, place: int, most: int | None = None) -> bool:
        """Keep a turn, cut to `most` characters where it has more; False where it does not fit."""
        if place in self.kept:
            return True
        size = self.sizes[place]
        if most is not None:
            size = min(size, max(most, self.overheads[place] + MIN_CUT_CHARS))
        missing = sum(self._is_missing(place, other) for other in (place - 1, place + 1))
        cost = size + self.gap * (missing - 1)
        if cost > self.room:
            return False
        self.room -= cost
        self.kept[place] = size
        return True

    def _is_missing(self, place: int, other: int) -> bool:
        """Whether the turn beside another is of the same section and not kept."""
        if other in self.kept or not 0 <= other < len(self.sizes):
            return False
        return (place < self.first_new) == (other < self.first_new)


def choose(choice: Choice, turns: Sequence[TranscriptTurn], telling: dict[int, Spot]) -> dict[int, int]:
    """Return how many characters each turn that is kept may take, by its place in the session."""
    whole, first_new, count = choice.room, choice.first_new, len(turns)
    request = next((place for place, turn in enumerate(turns) if turn.role == "user"), 0)
    for place in dict.fromkeys((count - 1, min(first_new, count - 1), request)):
        choice.add(place, whole // 6)
    new = [place for place in _by_rank(telling) if place >= first_new]
    for place in new:
        if choice.room < whole // 3:
            break
        _add_with_cause(choice, place, whole)
    for place in new:
        if place in choice.kept and place + 1 < count and choice.room >= whole // 3:
            choice.add(place + 1, whole // 16)  # what came of it
    _add_from_ends(choice, first_new, count)
    for place in (*new, *(place for place in _by_rank(telling) if place < first_new)):
        _add_with_cause(choice, place, whole)
    for place in range(first_new - 1, -1, -1):
        if not choice.add(place):
            break
    return choice.kept


def _by_rank(telling: dict[int, Spot]) -> list[int]:
    return sorted(telling, key=lambda place: (telling[place].rank, place))


def _add_with_cause(choice: Choice, place: int, whole: int) -> None:
    """Keep a turn that tells something and, if there is room, the one that it is about."""
    if choice.add(place, whole // 8) and place > 0 and place != choice.first_new:
        choice.add(place - 1, whole // 16)


def _add_from_ends(choice: Choice, start: int, end: int) -> None:
    """Keep turns from both ends inward, as long as the next one fits, the side with less of it first."""
    front, back = _Side(iter(range(start, end))), _Side(iter(range(end - 1, start - 1, -1)))
    while sides := [side for side in (front, back) if side.is_open]:
        side = min(sides, key=lambda side: side.taken)
        place = next(side.places, None)
        if place is None or not choice.add(place):
            side.is_open = False
        else:
            side.taken += choice.kept[place]


@dataclass
class _Side:
    """One end of the session, as far as it is kept."""

    places: Iterator[int]
    taken: int = 0
    is_open: bool = True
