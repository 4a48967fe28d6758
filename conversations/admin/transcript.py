"""A session's turns as people read them: speakers, folded tool traffic, marks where a lesson was taken."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.urls import reverse

from conversations.admin.marks import Piece, find_quote, mark, mark_word, with_stand_ins
from conversations.models import ConversationMessage, Session
from mirix.shapes import as_list
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
    came_of_it: tuple[tuple[str, str], ...] = ()
    """What was made of it: names and addresses."""


@dataclass(frozen=True, kw_only=True)
class CallView:
    """A tool call: name, and arguments as indented JSON, or as written where a quote is in them."""

    name: str
    pieces: list[Piece]
    is_quoted: bool


@dataclass(frozen=True, kw_only=True)
class TurnView:
    """One turn, ready for the page."""

    seq: int
    role: str
    speaker: str
    tool_name: str
    pieces: list[Piece]
    """What was said; the lines of tool calls are left to `calls`."""
    calls: list[CallView]
    is_error: bool
    truncated: bool
    occurred_at: datetime | None
    folded: bool
    preview: str
    pins: list[Pin] = field(default_factory=list)
    next_error_url: str = ""
    """Of an error: where the next one is; empty at the last."""

    @property
    def page(self) -> int:
        """The page of the transcript that the turn is on."""
        return page_of(self.seq)


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
    turns = session.turns.filter(seq__gt=first, seq__lte=first + TURNS_PER_PAGE).order_by("seq")
    return list(turns[:TURNS_PER_PAGE])  # without a limit the database may read a long session whole


def view_turns(
    turns: Iterable[ConversationMessage],
    pins: Iterable[Pin],
    *,
    word: str = "",
    next_errors: Mapping[int, str] | None = None,
) -> list[TurnView]:
    """Return the turns for the page, with what was taken from each beside it, and marks where `word` stands.

    `next_errors` has the address of the next error by the `seq` of each that has one.
    """
    by_seq: dict[int, list[Pin]] = defaultdict(list)
    for pin in pins:
        by_seq[pin.seq].append(pin)
    views = (_view(turn, by_seq[turn.seq]) for turn in turns)
    found = [replace(view, next_error_url=(next_errors or {}).get(view.seq, "")) for view in views]
    return [_with_word(view, word) for view in found] if word else found


def _with_word(view: TurnView, word: str) -> TurnView:
    """Mark a word instead of quotes, and unfold what holds it."""
    calls = []
    for call in view.calls:
        pieces = mark_word("".join(piece.text for piece in call.pieces), word)
        calls.append(replace(call, pieces=pieces, is_quoted=any(piece.marked for piece in pieces)))
    said = mark_word("".join(piece.text for piece in view.pieces), word) if view.pieces else []
    return replace(view, pieces=with_stand_ins(said), calls=calls, folded=False)


def _view(turn: ConversationMessage, pins: list[Pin]) -> TurnView:
    quotes = [pin.quote for pin in pins]
    # Of a cut turn the data may hold fewer calls than the text: there the text says all.
    told = [call for call in as_list(turn.tool_calls) if isinstance(call, dict)]
    said, calls = _split_calls(turn.content, [] if turn.truncated else told)
    prefix = f"[{turn.tool_name}]"
    if turn.tool_name and said.startswith(prefix):
        rest = said.removeprefix(prefix).lstrip()
        if all(find_quote(rest, quote) for quote in quotes):
            said = rest
    long = len(said) > FOLD_CHARS or said.count("\n") >= FOLD_LINES
    return TurnView(
        seq=turn.seq,
        role=turn.role,
        speaker=turn.get_role_display(),
        tool_name=turn.tool_name,
        pieces=with_stand_ins(mark(said, quotes)) if said else [],
        calls=[_view_call(call, text, quotes) for call, text in zip(told, calls, strict=False)],
        is_error=turn.is_error,
        truncated=turn.truncated,
        occurred_at=turn.occurred_at,
        folded=long and turn.role == "tool" and not pins,
        preview=shorten(said, PREVIEW_CHARS),
        pins=pins,
    )


def _split_calls(content: str, calls: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """Return what a turn says beside its calls, and the text of each call.

    Extraction writes a call as a line `[call name] arguments`, the calls last. A turn in which they are
    not found, one after the other, says all of its content.
    """
    starts: list[int] = []
    position = 0
    for call in calls:
        head = f"[call {call['name']}]" if call.get("name") else "[call]"
        found = re.compile(f"^{re.escape(head)}", re.MULTILINE).search(content, position)
        if found is None:
            return content, [""] * len(calls)
        starts.append(found.start())
        position = found.end()
    if not starts:
        return content, []
    return content[: starts[0]].rstrip(), [
        content[start:end].strip() for start, end in zip(starts, [*starts[1:], len(content)], strict=True)
    ]


def _view_call(call: dict[str, Any], text: str, quotes: list[str]) -> CallView:
    quoted = any(find_quote(text, quote) for quote in quotes)
    return CallView(
        name=str(call.get("name", "")),
        pieces=mark(text, quotes) if quoted else [Piece(_indented(call.get("arguments")))],
        is_quoted=quoted,
    )


def _indented(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, indent=2)
