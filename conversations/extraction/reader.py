"""The walk over a request's messages: each to its family, then the rules that hold for every family."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from typing import Any

from conversations.extraction.calls import OpenCalls, as_data
from conversations.extraction.content import json_type
from conversations.extraction.errors import looks_like_error
from conversations.extraction.families import FAMILIES
from conversations.extraction.hashing import canonical_hash
from conversations.extraction.reading import EMPTY, Draft, Omission, unreadable
from conversations.extraction.types import Extraction, Skipped, Turn
from mirix.text import clean_json, truncate

MAX_CONTENT_CHARS = 65_536
MAX_ID_CHARS = 256
NO_OUTPUT = "(no output)"
EXPECTED = " or ".join(family.expects for family in FAMILIES)

logger = logging.getLogger(__name__)


def extract(messages: list[Any], earlier_calls: Mapping[str, str] | None = None) -> Extraction:
    """Turn messages of any known shape into turns; report every other message by its index.

    Never raises, whatever the input: a message that cannot be read is skipped with the reason and costs
    its siblings nothing. `earlier_calls` maps the ids of calls made before these messages to the names of
    their tools, for results whose call came in an earlier request.
    """
    open_calls = OpenCalls(earlier_calls or {})
    turns: list[Turn] = []
    skipped: list[Skipped] = []
    for index, raw in enumerate(messages if isinstance(messages, list) else [messages]):
        try:
            read = _read_message(index, raw, open_calls)
        except Exception as error:  # a fault of ours costs one message, and is named
            logger.warning("message %d could not be read", index, exc_info=True)
            read = unreadable(f"reading it failed: {type(error).__name__}")
        if isinstance(read, Omission):
            skipped.append(Skipped(index=index, reason=read.reason, unreadable=read.unreadable))
        else:
            turns.extend(read)
    return Extraction(turns=turns, skipped=skipped)


def _read_message(index: int, raw: Any, open_calls: OpenCalls) -> list[Turn] | Omission:
    message = clean_json(raw)
    if not isinstance(message, dict):
        return unreadable(f"expected {EXPECTED}, got {json_type(message)}")
    family = next((family for family in FAMILIES if family.matches(message)), None)
    if family is None:
        keys = ", ".join(f"“{key[:64]}”" for key in list(message)[:5]) or "nothing"
        return unreadable(f"unknown shape with {keys}; expected {EXPECTED}")
    drafts = family.read(message)
    if isinstance(drafts, Omission):
        return drafts
    digest = canonical_hash({key: value for key, value in message.items() if key != "id"})
    turns = [_finish(draft, index, digest, open_calls) for draft in drafts]
    return [_with_id(turns[0], message.get("id")), *turns[1:]] if turns else EMPTY


def _finish(draft: Draft, index: int, digest: str, open_calls: OpenCalls) -> Turn:
    """Complete a draft: resolve the tool, write calls or the tool's name into the text, cap it."""
    open_calls.add(draft.calls)
    calls, calls_cut = as_data(draft.calls)
    call_id, tool_name, text = "", "", draft.text
    if draft.role == "tool":
        call_id, tool_name = open_calls.answer(id=draft.tool_call_id, name=draft.tool_name)
        text = f"[{tool_name or 'tool'}] {text if text.strip() else NO_OUTPUT}"
    elif draft.calls:
        text = "\n".join([*([text] if text.strip() else []), *(call.line for call in draft.calls)])
    content, content_cut = truncate(text, MAX_CONTENT_CHARS)
    return Turn(
        index=index,
        role=draft.role,
        content=content,
        content_hash=digest,
        tool_calls=calls,
        tool_name=tool_name,
        tool_call_id=call_id,
        is_error=_is_error(draft),
        truncated=content_cut or calls_cut,
    )


def _is_error(draft: Draft) -> bool:
    if draft.role != "tool":
        return False
    return looks_like_error(draft.text) if draft.is_error is None else draft.is_error


def _with_id(turn: Turn, raw: Any) -> Turn:
    """Give a message's id to its first turn; a longer one than fits is replaced by its hash."""
    if isinstance(raw, bool) or not isinstance(raw, str | int):
        return turn
    message_id = str(raw)
    if len(message_id) > MAX_ID_CHARS:
        message_id = hashlib.sha256(message_id.encode()).hexdigest()
    return Turn(**{**vars(turn), "message_id": message_id})
