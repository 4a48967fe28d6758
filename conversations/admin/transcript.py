"""A session's turns as people read them: speakers, folded tool traffic, marks where a lesson was taken."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse

from conversations.admin.marks import Piece, mark
from conversations.models import ConversationMessage, Session
from mirix.text import shorten

TURNS_PER_PAGE = 100
FOLD_CHARS = 700
FOLD_LINES = 12
PREVIEW_CHARS = 180


@dataclass(frozen=True, kw_only=True)
class Pin:
    """Something that was taken from a turn, shown beside it."""

    seq: int
    title: str
    kind: str
    """`good`, `bad` or `plain`: the colour of the pin."""
    label: str
    quote: str
    url: str


@dataclass(frozen=True, kw_only=True)
class TurnView:
    """One turn, ready for the page."""

    seq: int
    role: str
    speaker: str
    pieces: list[Piece]
    calls: list[tuple[str, str]]
    """Name and arguments, as indented JSON, of each tool call."""
    is_error: bool
    truncated: bool
    occurred_at: datetime | None
    folded: bool
    preview: str
    pins: list[Pin] = field(default_factory=list)


def page_of(seq: int) -> int:
    """Return the page of a transcript that holds the turn `seq`, from 1."""
    return (max(seq, 1) - 1) // TURNS_PER_PAGE + 1


def turn_url(session_pk: str, seq: int | None) -> str:
    """Return the address of a turn in its transcript, or of the transcript."""
    url = reverse("admin:conversations_session_change", args=[session_pk])
    if seq is None:
        return url
    return f"{url}?page={page_of(seq)}#turn-{seq}" if page_of(seq) > 1 else f"{url}#turn-{seq}"


def turns_of_page(session: Session, page: int) -> list[ConversationMessage]:
    """Return the turns of one page in order; a page is a range of `seq`, so each costs the same."""
    first = (page - 1) * TURNS_PER_PAGE
    return list(session.turns.filter(seq__gt=first, seq__lte=first + TURNS_PER_PAGE).order_by("seq"))


def view_turns(turns: Iterable[ConversationMessage], pins: Iterable[Pin]) -> list[TurnView]:
    """Return the turns for the page, with what was taken from each beside it."""
    by_seq: dict[int, list[Pin]] = defaultdict(list)
    for pin in pins:
        by_seq[pin.seq].append(pin)
    return [_view(turn, by_seq[turn.seq]) for turn in turns]


def _view(turn: ConversationMessage, pins: list[Pin]) -> TurnView:
    long = len(turn.content) > FOLD_CHARS or turn.content.count("\n") >= FOLD_LINES
    return TurnView(
        seq=turn.seq,
        role=turn.role,
        speaker=turn.get_role_display(),
        pieces=mark(turn.content, (pin.quote for pin in pins)),
        calls=[(str(call.get("name", "")), _indented(call.get("arguments"))) for call in turn.tool_calls],
        is_error=turn.is_error,
        truncated=turn.truncated,
        occurred_at=turn.occurred_at,
        folded=long and turn.role == "tool" and not pins,
        preview=shorten(turn.content, PREVIEW_CHARS),
        pins=pins,
    )


def _indented(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, indent=2)
