"""Calls of tools: read from a message, written into the turn's text, kept as data, matched to results.

In the text of a turn each call is a line of its own, its arguments as JSON exactly as the model wrote
them:

    [call get_order] {"order_id": "A-17"}
"""

from __future__ import annotations

import ast
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.extraction.payloads import plain, scrub
from mirix.text import clean_json, truncate

MAX_NAME_CHARS = 256
MAX_CALLS_CHARS = 65_536
CALL_OVERHEAD_CHARS = 32
MAX_UNNAMED_CALLS = 128
MAX_LITERAL_CHARS = 65_536
NAMES = ("name", "tool_name", "toolName", "function")


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """One call of a tool."""

    id: str
    name: str
    text: str
    """The arguments as text, verbatim where the model wrote text."""
    arguments: Any
    """The arguments as data: an object or list where the text is one, else the text."""

    @property
    def line(self) -> str:
        """The call as a line of the turn's content."""
        head = f"[call {self.name}]" if self.name else "[call]"
        return f"{head} {self.text}" if self.text else head


def make_call(*, id: Any = "", name: Any = "", arguments: Any = None) -> Call:  # noqa: A002
    """Return a call from whatever a message gives for its id, name and arguments."""
    if arguments is None:
        arguments, text = {}, ""
    elif isinstance(arguments, str):
        text = scrub(arguments)
        arguments = parsed(text)
    else:
        arguments = plain(arguments)
        text = json.dumps(arguments, ensure_ascii=False)
    return Call(id=label(id), name=label(name), text=text, arguments=arguments)


def label(value: Any) -> str:
    """Return an id or a name as a string within bounds; empty for what cannot be one."""
    if isinstance(value, str):
        return value[:MAX_NAME_CHARS]
    return str(value) if type(value) is int and abs(value) < 10**MAX_NAME_CHARS else ""


def name_of(call: dict[str, Any]) -> Any:
    """Return the name of a call's tool, under whichever of the names for it."""
    return next((call[key] for key in NAMES if isinstance(call.get(key), str | int) and call[key]), "")


def parsed(text: str, *, may_be_python: bool = False) -> Any:
    """Return the object or list that `text` holds as JSON, cleaned; else `text` itself.

    Some models write Python's literals instead, with single quotes and `True`.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = _literal(text) if may_be_python and len(text) <= MAX_LITERAL_CHARS else None
    return clean_json(value) if isinstance(value, dict | list) else text


def _literal(text: str) -> Any:
    try:
        return json.loads(json.dumps(ast.literal_eval(text.strip())))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def as_data(calls: Iterable[Call]) -> tuple[list[dict[str, Any]], bool]:
    """Return the calls as stored on the turn, and whether something had to be cut.

    The whole list is bounded: arguments that no longer fit become a cut text, further calls are left out.
    """
    data: list[dict[str, Any]] = []
    room = MAX_CALLS_CHARS
    cut = False
    for call in calls:
        room -= len(call.id) + len(call.name) + CALL_OVERHEAD_CHARS
        if room <= 0:
            return data, True
        size = len(json.dumps(call.arguments))
        arguments = call.arguments
        if size > room:
            # Escaping may double a text, so half the room is what surely fits.
            arguments, cut = truncate(call.text, room // 6)[0], True
            size = len(json.dumps(arguments))
        room -= size
        data.append({"id": call.id, "name": call.name, "arguments": arguments})
    return data, cut


class OpenCalls:
    """The calls of a session so far, to find out which call a result answers.

    Real transcripts repeat ids within a session, leave them empty, or give results no name at all. So a
    result with an id answers the latest message that called with it, repeated ids of one message in their
    order; without an id, it answers the first unanswered call, of its name if it has one, of the latest
    message with calls.
    """

    def __init__(self, earlier: Mapping[str, str], unanswered: Sequence[Call] = ()) -> None:
        self._earlier = earlier
        self._by_id: dict[str, deque[Call]] = {}
        self._latest: list[Call] = list(unanswered)

    @property
    def unanswered(self) -> list[Call]:
        """The calls of the latest message with calls that no result has answered so far."""
        return list(self._latest)

    def add(self, calls: list[Call]) -> None:
        """Note the calls of one message."""
        if not calls:
            return
        self._latest = calls[:MAX_UNNAMED_CALLS]
        for call in calls:
            self._by_id.pop(call.id, None)
        for call in calls:
            self._by_id.setdefault(call.id, deque()).append(call)

    def answer(self, *, id: str, name: str) -> tuple[str, str]:  # noqa: A002
        """Take the call that a result answers; return the result's id and name, completed from it."""
        call = self._take(id, name)
        if call is None:
            return id, name or self._earlier.get(id, "")
        if call in self._latest:
            self._latest.remove(call)
        return id or call.id, name or call.name

    def _take(self, call_id: str, name: str) -> Call | None:
        if not call_id:
            return next((call for call in self._latest if not name or call.name == name), None)
        calls = self._by_id.get(call_id)
        if not calls:
            return None
        return calls.popleft() if len(calls) > 1 else calls[0]


def unanswered(calls: Iterable[Mapping[str, Any]], results: Iterable[tuple[str, str]]) -> list[Call]:
    """Return those calls of a message, as they are stored, that the results behind it left open.

    `results` are the ids and names of these. Where one answers none of the calls, nobody can tell which are
    open, and none is.
    """
    made = [Call(id=call["id"], name=call["name"], text="", arguments=call["arguments"]) for call in calls]
    found = OpenCalls({})
    found.add(made)
    for call_id, name in results:
        before = len(found.unanswered)
        found.answer(id=call_id, name=name)
        if len(found.unanswered) == before:
            return []
    return found.unanswered
