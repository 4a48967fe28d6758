"""The walk over a request's messages: each to its family, then the rules that hold for every family."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from conversations.extraction.agent_events import as_message
from conversations.extraction.calls import Call, OpenCalls, as_data
from conversations.extraction.drafts import Draft, Omission
from conversations.extraction.errors import looks_like_error
from conversations.extraction.families import FAMILIES
from conversations.extraction.hashing import chain, turn_hash
from conversations.extraction.reading import Reading
from conversations.extraction.types import Extraction, Skipped, Turn
from mirix.text import clean_json, truncate

MAX_CONTENT_CHARS = 65_536
MAX_ID_CHARS = 256
NO_OUTPUT = "(no output)"

logger = logging.getLogger(__name__)


def extract(
    messages: list[Any],
    earlier_calls: Mapping[str, str] | None = None,
    unanswered: Sequence[Call] = (),
    *,
    is_clean: bool = False,
) -> Extraction:
    """Turn messages of any known shape into turns; report every other message by its index.

    Never raises, whatever the input: a message that cannot be read is skipped with the reason and costs
    its siblings nothing. `earlier_calls` maps the ids of calls made before these messages to the names of
    their tools, for results whose call came in an earlier request; `unanswered` are the calls that results
    without an id answer, in their order. `is_clean` says that `clean_json` has seen
    the messages.
    """
    open_calls = OpenCalls(earlier_calls or {}, unanswered)
    turns: list[Turn] = []
    skipped: list[Skipped] = []
    left_out: dict[int, dict[str, int]] = {}
    for index, raw in enumerate(messages if isinstance(messages, list) else [messages]):
        try:
            element = raw if is_clean else clean_json(raw)
            read, omitted = _read_element(index, element, open_calls)
        except Exception as error:  # a fault of ours costs one message, and is named
            logger.warning("message %d could not be read", index, exc_info=True)
            read = Omission(reason=f"reading it failed: {type(error).__name__}", unreadable=True)
        if isinstance(read, Omission):
            skipped.append(Skipped(index=index, reason=read.reason, unreadable=read.unreadable))
            continue
        turns.extend(read)
        if omitted:
            left_out[index] = omitted
    return Extraction(turns=turns, skipped=skipped, left_out=left_out)


def _read_element(
    index: int, element: Any, open_calls: OpenCalls
) -> tuple[list[Turn] | Omission, dict[str, int]]:
    """Return the turns of one element, or why there are none, and what is left out of them."""
    message = as_message(element)
    reading = Reading(families=FAMILIES)
    if isinstance(message, dict):
        reading.message_id = message.get("id")
    reading.inner(message)
    drafts = reading.outcome()
    if isinstance(drafts, Omission):
        return drafts, {}
    digest = _hash(drafts)
    turns = [_finish(draft, index, digest, open_calls) for draft in drafts]
    return _with_id(turns, reading.message_id), reading.left_out


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


def _hash(drafts: list[Draft]) -> str:
    """Return the hash of a message: of its turn, or of all of its turns where it has several."""
    hashes = [
        turn_hash(
            role=draft.role,
            text=draft.text,
            calls=[[call.id, call.name, call.arguments] for call in draft.calls],
            answers=draft.tool_call_id or draft.tool_name,
        )
        for draft in drafts
    ]
    return hashes[0] if len(hashes) == 1 else chain(hashes)


def _is_error(draft: Draft) -> bool:
    if draft.role != "tool":
        return False
    return looks_like_error(draft.text) if draft.is_error is None else draft.is_error


def _with_id(turns: list[Turn], raw: Any) -> list[Turn]:
    """Give a message's id to its turns; a longer one than fits is replaced by its hash."""
    if isinstance(raw, bool) or not isinstance(raw, str | int) or raw == "":
        return turns
    message_id = str(raw)
    if len(message_id) > MAX_ID_CHARS:
        message_id = hashlib.sha256(message_id.encode()).hexdigest()
    return [replace(turn, message_id=message_id, part=part) for part, turn in enumerate(turns)]
