"""What a message says beyond what is stored of it. Pure.

A message may come again grown: its text goes on, calls and results follow. Or a part of it that nobody
could read at first is read now. Turns are never edited, so that what is missing becomes turns of its own: to
find it, what is stored is looked for in what the message says now, piece by piece and in its order, what was
stored at another time for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from conversations.extraction import Turn
from conversations.extraction.content import is_marker
from conversations.extraction.hashing import canonical_hash


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A line that is said, a call, or a tool's result."""

    turn: int
    """The position of its turn among those of its message."""
    kind: str
    """`call`, `tool`, or the role of who says it."""
    text: str
    """As it stands in the turn's content; of a result, without the name of its tool."""
    call: int = -1
    """Of a call: its position among those of its turn."""
    call_hash: str = ""
    call_id: str = ""
    is_last: bool = False
    """Whether it is the last line of its turn, which may go on."""

    def is_of(self, other: Piece) -> bool:
        """Return whether both say the same."""
        if self.kind != other.kind:
            return False
        if self.kind == "call":
            return self.call_hash == other.call_hash
        is_answer = not self.call_id or not other.call_id or self.call_id == other.call_id
        return self.text == other.text and is_answer

    def begins(self, other: Piece) -> bool:
        """Return whether the other says this, and goes on in the same line."""
        is_line = self.is_last and self.kind == other.kind and self.kind not in ("call", "tool")
        return is_line and self.text.strip() != "" and other.text.startswith(self.text)


class _Unclear(Exception):
    """What a turn says cannot be taken apart."""


def missing(stored: Sequence[Turn], message: Sequence[Turn], *, anywhere: bool = False) -> list[Turn] | None:
    """Return what a message says that is not stored of it, as turns; None where it contradicts that.

    `stored` are all turns that came of it so far, in their order. What is missing has to stand behind them,
    text that goes on before the calls of its turn; `anywhere` or where a part of it was unknown, it may stand
    anywhere. An earlier state of what is stored says nothing new. Of texts that were cut nobody can tell.
    """
    try:
        batches = [
            list(_pieces(list(group))) for _, group in groupby(stored, key=lambda turn: turn.content_hash)
        ]
        now = list(_pieces(message))
    except _Unclear:
        return None
    before = [piece for batch in batches for piece in batch]
    anywhere = anywhere or any(map(_is_placeholder, before))
    beyond: list[Piece] | None = now
    for batch in batches:
        if beyond is not None:
            beyond = _beyond(batch, beyond, anywhere=anywhere)
    if beyond is None:
        return [] if _beyond(now, before, anywhere=False, with_placeholders=True) is not None else None
    return list(_as_turns(beyond, message))


def _is_placeholder(piece: Piece) -> bool:
    return piece.kind not in ("call", "tool") and is_marker(piece.text)


def _pieces(turns: Sequence[Turn]) -> Iterator[Piece]:
    for position, turn in enumerate(turns):
        if turn.truncated:
            raise _Unclear
        if turn.role == "tool":
            text = turn.content.removeprefix(f"[{turn.tool_name or 'tool'}] ")
            yield Piece(turn=position, kind="tool", text=text, call_id=turn.tool_call_id)
            continue
        said, called = _split(turn)
        lines = said.split("\n") if said else []
        for number, line in enumerate(lines, start=1):
            yield Piece(turn=position, kind=turn.role, text=line, is_last=number == len(lines))
        for number, (text, call) in enumerate(zip(called, turn.tool_calls, strict=True)):
            yield Piece(turn=position, kind="call", text=text, call=number, call_hash=canonical_hash(call))


def _split(turn: Turn) -> tuple[str, list[str]]:
    """Return what a turn says, and its calls as they are written behind that."""
    called: list[str] = []
    end = len(turn.content)
    for call in reversed(turn.tool_calls):
        head = f"[call {call['name']}]" if call["name"] else "[call]"
        start = turn.content.rfind(head, 0, end)
        if start < 0:
            raise _Unclear
        called.append(turn.content[start:end].removesuffix("\n"))
        end = start
    said = turn.content[:end]
    return (said.removesuffix("\n") if called else said), called[::-1]


def _beyond(
    before: Sequence[Piece], now: Sequence[Piece], *, anywhere: bool, with_placeholders: bool = False
) -> list[Piece] | None:
    """Return what is in `now` and not in `before`; None where something of `before` is not in `now`."""
    left = list(now)
    found: list[Piece] = []
    for piece in before:
        if left and not piece.is_of(left[0]) and piece.begins(left[0]):
            left[0] = replace(left[0], text=left[0].text[len(piece.text) :])
            continue
        at = next((at for at, other in enumerate(left) if piece.is_of(other)), None)
        if at is None and _is_placeholder(piece) and not with_placeholders:
            continue
        if at is None or not (anywhere or _is_said_before_call(left[: at + 1])):
            # One that ends before is an earlier state.
            return [] if not left and not found else None
        found += left[:at]
        del left[: at + 1]
    return found + left


def _is_said_before_call(pieces: Sequence[Piece]) -> bool:
    """Return whether a piece is the next one, or a call behind what was added to the text of its turn."""
    *passed, last = pieces
    return not passed or (last.kind == "call" and {piece.kind for piece in passed} == {"assistant"})


def _as_turns(pieces: Sequence[Piece], message: Sequence[Turn]) -> Iterator[Turn]:
    for position, group in groupby(pieces, key=lambda piece: piece.turn):
        turn, said = message[position], list(group)
        if turn.role == "tool":
            yield turn
        elif content := "\n".join(piece.text for piece in said if piece.text.strip()):
            calls = [turn.tool_calls[piece.call] for piece in said if piece.kind == "call"]
            yield replace(turn, content=content, tool_calls=calls)
