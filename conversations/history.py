"""Which turns of a request are new: doubles by message id, and requests that repeat the session so far.

Pure rules over hashes; `conversations.storage` brings what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from conversations.extraction import Turn
from conversations.extraction.hashing import chain
from conversations.growth import missing

MIN_DETECTED = 2


class HistoryMismatch(Exception):
    """A request said to hold the session from its start, but begins otherwise than what is stored."""

    def __init__(self, stored: int) -> None:
        super().__init__(
            f"history is “full”, but the {stored} stored turns of the session are not what the request "
            "begins with"
        )


def without_known_ids(
    turns: Sequence[Turn],
    stored: Mapping[str, Sequence[Turn]],
    partly: Mapping[int, Sequence[Turn]] | None = None,
) -> tuple[list[Turn], set[int]]:
    """Return what is new in messages whose id is known, all of the others, and the indexes of contradictions.

    `stored` are the turns of messages by id; within the turns the first message of an id counts as stored.
    What has the id and the hash of another is its double. What has the id alone is either the other, grown,
    and what is new in it follows as turns of that message; or it contradicts that, and none of it is new.
    `partly` are the turns of messages by index of which a part could not be read when they were stored: these
    are compared with them, by id where they have one.
    """
    if not partly and not any(turn.message_id for turn in turns):
        return list(turns), set()
    known = {message_id: list(pieces) for message_id, pieces in stored.items()}
    kept: list[Turn] = []
    contradicting: set[int] = set()
    for index, group in groupby(turns, key=lambda turn: turn.index):
        message = list(group)
        message_id = message[0].message_id
        pieces = known.setdefault(message_id, []) if message_id else []
        is_partly = partly is not None and index in partly
        if partly is not None and is_partly and not pieces:
            pieces = list(partly[index])
        new = _new_of(message, pieces, is_partly=is_partly)
        if new is None:
            contradicting.add(index)
            continue
        kept += new
        if message_id:
            known[message_id] += new
    return kept, contradicting


def _new_of(message: list[Turn], pieces: list[Turn], *, is_partly: bool) -> list[Turn] | None:
    """Return what is new in a message of which `pieces` are stored; None where it contradicts them."""
    if any(piece.content_hash == message[0].content_hash for piece in pieces):
        return []
    if not pieces:
        return None if is_partly else message
    if message[0].message_id and [piece.part for piece in pieces] != list(range(len(pieces))):
        return None  # some are pruned
    new = missing(pieces, message, anywhere=is_partly)
    if new is None or not message[0].message_id:
        return new
    return [replace(turn, part=part) for part, turn in enumerate(new, start=len(pieces))]


def new_turns(
    turns: Sequence[Turn],
    *,
    history: str,
    stored: int,
    stored_hash: str,
    stored_hashes: Callable[[], Mapping[int, str]],
) -> list[Turn]:
    """Return the turns that are not stored yet, by what `history` says of the request.

    `stored` turns, whose hashes chain to `stored_hash`, are in the session. `full`: they must be what the
    request begins with, else `HistoryMismatch`; a request that is shorter must be what they begin with, which
    the turns that are left must tell: those it would repeat, or all that follow those.
    `delta`: everything is new. Empty: as `full` when at least two turns are stored, the request is longer
    and begins with exactly them; else everything is new, so that a client that says “ok” twice keeps both.
    `stored_hashes` is asked for the single hashes, by sequence number, only where the chain cannot tell;
    turns that were pruned are not among them.
    """
    if history == "delta" or stored == 0:
        return list(turns)
    if history == "full" and len(turns) < stored:
        if not _begins(stored_hashes(), turns, stored, stored_hash):
            raise HistoryMismatch(stored)
        return []
    repeats = len(turns) >= stored and chain(turn.content_hash for turn in turns[:stored]) == stored_hash
    if history == "full":
        if not repeats:
            raise HistoryMismatch(stored)
        return list(turns[stored:])
    return list(turns[stored:] if repeats and len(turns) > stored >= MIN_DETECTED else turns)


def _begins(kept: Mapping[int, str], turns: Sequence[Turn], stored: int, stored_hash: str) -> bool:
    """Return whether a session surely begins with fewer turns than were stored.

    Of turns that were pruned only the chain knows, so all that follow are needed to tell.
    """
    hashes = [turn.content_hash for turn in turns]
    if all(kept.get(seq) == item for seq, item in enumerate(hashes, start=1)):
        return True
    rest = [kept.get(seq, "") for seq in range(len(hashes) + 1, stored + 1)]
    return all(rest) and chain([*hashes, *rest]) == stored_hash
