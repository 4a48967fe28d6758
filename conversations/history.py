"""Which turns of a request are new: doubles by message id, and requests that repeat the session so far.

Pure rules over hashes; `conversations.storage` brings what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conversations.extraction import Turn
from conversations.extraction.hashing import chain

MIN_DETECTED = 2


class HistoryMismatch(Exception):
    """A request said to hold the session from its start, but begins otherwise than what is stored."""

    def __init__(self, stored: int) -> None:
        super().__init__(
            f"history is “full”, but the {stored} stored turns of the session are not what the request "
            "begins with"
        )


def without_known_ids(turns: Sequence[Turn], stored: Mapping[str, str]) -> tuple[list[Turn], set[int]]:
    """Return the turns of messages whose id is new, and the indexes of those whose id is another message's.

    `stored` are the hashes of messages that are stored, by id; within the turns the first of an id counts.
    What has the id and the hash of another is its double, and in neither of the two.
    """
    hashes, first_index = dict(stored), dict.fromkeys(stored, -1)
    known: set[int] = set()
    clashing: set[int] = set()
    for turn in turns:
        if turn.message_id and first_index.setdefault(turn.message_id, turn.index) != turn.index:
            known.add(turn.index)
            if hashes[turn.message_id] != turn.content_hash:
                clashing.add(turn.index)
        elif turn.message_id:
            hashes[turn.message_id] = turn.content_hash
    return [turn for turn in turns if turn.index not in known], clashing


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
