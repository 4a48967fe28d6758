"""Raw replies of distillers, as far as a page shows them: whoever wrote one wrote hostile text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left, Length, Right

TAIL_SHARE = 4
"""Of what is shown of a long reply, one part in so many is its end."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is shown of a reply: all of it, or its beginning and end with the length of what is between."""

    begins: str
    left_out: int = 0
    ends: str = ""


def with_reply(attempts: QuerySet, *, chars: int, also: str = "dropped") -> QuerySet:
    """Return attempts with what `reply_of` needs to show at most so many characters of each reply.

    A reply may have ten million: the rest stays in the database, with the field `also`.
    """
    return attempts.defer("raw_reply", also).annotate(
        reply_chars=Length("raw_reply"),
        reply_begins=Left("raw_reply", chars),
        reply_ends=Right("raw_reply", chars // TAIL_SHARE),
    )


def reply_of(attempt: Any, *, chars: int) -> Reply | None:
    """Return what is shown of the reply of an attempt from `with_reply`; None where there is none."""
    if not attempt.reply_chars:
        return None
    if attempt.reply_chars <= chars:
        return Reply(begins=attempt.reply_begins)
    tail = chars // TAIL_SHARE
    return Reply(
        begins=attempt.reply_begins[: chars - tail],
        left_out=attempt.reply_chars - chars,
        ends=attempt.reply_ends,
    )
