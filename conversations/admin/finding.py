"""Finding one's way in a long transcript: from error to error, and to the turns that say a word.

Each costs the same in a session of ten turns and in one of a million: errors have an index of their own, and
a search reads a part of the session at a time and says where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from conversations.admin.transcript import TURNS_PER_PAGE, turn_url
from conversations.models import ConversationMessage, Session

MAX_COUNTED = 1_000
SEARCHED_AT_A_TIME = 10_000
MAX_FOUND = 50


@dataclass(frozen=True, kw_only=True)
class Errors:
    """The errors of a session, as one page of its transcript needs them."""

    count: int
    """At most `MAX_COUNTED` and one more."""
    first_url: str
    """Of the first behind the start of the page, else of the first of all."""
    next_urls: dict[int, str]
    """By the `seq` of an error on the page: where the next one is."""

    @property
    def number(self) -> str:
        """How many there are, in words."""
        return f"more than {MAX_COUNTED:,}" if self.count > MAX_COUNTED else f"{self.count:,}"


def errors_around(session: Session, page: int) -> Errors | None:
    """Return the errors of a session for one page of its transcript; None where there are none."""
    errors = session.turns.filter(is_error=True).order_by("seq").values_list("seq", flat=True)
    if not (count := errors.order_by()[: MAX_COUNTED + 1].count()):
        return None
    # Those of the page, and the first behind it.
    seqs = list(errors.filter(seq__gt=(page - 1) * TURNS_PER_PAGE)[: TURNS_PER_PAGE + 1])
    start = seqs[0] if seqs else errors.first()
    following = pairwise(seqs)
    return Errors(
        count=count,
        first_url=turn_url(session.pk, start),
        next_urls={seq: turn_url(session.pk, after) for seq, after in following},
    )


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search in a transcript found."""

    turns: list[ConversationMessage]
    through: int
    """The last turn that was looked at."""
    is_over: bool
    """Whether that was the end of the session."""


def search_turns(session: Session, word: str, after: int) -> Found:
    """Return the turns behind `after` that say `word`, in any case: of a part of the session, one page."""
    through = after + SEARCHED_AT_A_TIME
    turns = session.turns.filter(seq__gt=after, seq__lte=through, content__icontains=word).order_by("seq")
    found = list(turns[: MAX_FOUND + 1])
    if len(found) > MAX_FOUND:
        found.pop()
        through = found[-1].seq
    through = min(through, session.last_seq)
    return Found(turns=found, through=through, is_over=through >= session.last_seq)
