"""What a family of message shapes writes into: a `Reading`, which becomes drafts of turns or a reason.

A family knows where things stand in its messages and says so: this is said, this is called, this came
back, this is left out. What follows from that is the same for all and lies here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from conversations.extraction.calls import Call, label
from conversations.extraction.content import (
    REASONING_TYPES,
    as_text,
    is_tool_answer,
    json_type,
    kind_of,
    marker,
    read_part,
    without_thoughts,
)
from conversations.extraction.drafts import Draft, Omission
from conversations.extraction.errors import reports_error, truth
from conversations.extraction.payloads import scrub
from conversations.extraction.rest import as_lines, rest_of
from conversations.extraction.types import Role

MAX_KINDS_NAMED = 5
LEFT_OUT = {
    "system": "system message",
    "developer": "developer message",
    "provider error": "error reply of a provider",
}
PLAIN = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call", "name"})
"""Fields of chat messages alone; most messages have no others."""
EXPECTED = "expected an object with “role” and “content”, or another shape of docs/shapes.md"
EXPECTED_CONTENT = "a string or a list of text, image, audio and file parts"


PartReader = Callable[[dict[str, Any], "Reading", Role], None]
"""Reads one typed part of a message of a role, into a reading."""


def _nothing(_message: dict[str, Any], _reading: Reading) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family of shapes: whether a message is of it, and how to read one; what parts of content it has."""

    name: str
    matches: Callable[[dict[str, Any]], bool] = lambda _: False
    """A family without messages of its own matches none."""
    read: Callable[[dict[str, Any], Reading], None] = _nothing
    parts: Mapping[str, PartReader] = field(default_factory=dict)
    """Readers of content parts by their `type`, in messages of all families; `*` stands for anything."""
    keys: Mapping[str, PartReader] = field(default_factory=dict)
    """Readers of content parts without a type, by the key that tells them."""


@dataclass(kw_only=True)
class Reading:
    """What is read from one element of a request, in order."""

    families: tuple[Family, ...]
    message_id: Any = None
    """The element's own id: its `id`, unless its family names another."""
    omitted: Counter[str] = field(default_factory=Counter)
    """How many texts of which kind were left out: `reasoning`, `system`, `developer`, or others' words."""
    _drafts: list[Draft] = field(default_factory=list)
    _open: Draft | None = None
    _unknown: list[str] = field(default_factory=list)
    _faults: list[str] = field(default_factory=list)
    _is_readable: bool = False

    def say(self, role: Role, text: str) -> None:
        """Add text to the turn of `role`; a new turn begins where another one came between."""
        if role == "assistant" and (answer := without_thoughts(text)) != text:
            self.omit("reasoning")
            text = answer
        if text:
            self._is_readable = self._is_readable or not text.isspace()
            self._turn_of(role).texts.append(scrub(text))

    def call(self, call: Call) -> None:
        """Add a call to the assistant's turn."""
        self._is_readable = True
        self._turn_of("assistant").calls.append(call)

    def has_call(self, call: Call) -> bool:
        """Return whether the current turn has a call already; some messages say the same call in two ways."""
        return self._open is not None and any(
            known.id == call.id and (call.id != "" or (known.name, known.text) == (call.name, call.text))
            for known in self._open.calls
        )

    def result(
        self,
        content: Any,
        *,
        name: Any = "",
        call_id: Any = "",
        is_error: bool | None = None,
        holder: dict[str, Any] | None = None,
        read: Collection[str] = (),
    ) -> None:
        """Add what a tool returned, any JSON value, as a turn of its own; nothing returned is one too.

        `holder` is the object that the result stood in, whose fields but `read` and those of other use are
        looked through for more of it.
        """
        self._is_readable = True
        self.close()
        if is_error is None and is_tool_answer(content):
            is_error = truth(content.get("isError"))
        draft = Draft(role="tool", tool_name=label(name), tool_call_id=label(call_id), is_error=is_error)
        text = as_text(content).text
        if rest := rest_of(holder, text, read) if holder else None:
            draft.texts += [*([text] if text.strip() else []), *as_lines(rest)]
            draft.is_error = True if is_error is None and reports_error(rest) else is_error
        else:
            draft.texts.append(text)
        self._drafts.append(draft)

    def omit(self, kind: str) -> None:
        """Count a text that belongs in no turn."""
        self.omitted[kind] += 1

    def unknown(self, role: Role, kind: str) -> None:
        """Leave a marker for a part of content that nobody here knows."""
        self._unknown.append(kind)
        self._turn_of(role).texts.append(marker(kind))

    def fault(self, reason: str) -> None:
        """Note that the element, or a message inside it, is not understood, and what was expected."""
        self._faults.append(reason)

    def close(self) -> None:
        """End the current turn; what follows is another message."""
        self._open = None

    def content(self, role: Role, content: Any) -> None:
        """Read a message's content: a string, a part, a list of parts or nothing."""
        for part in content if isinstance(content, list) else [content]:
            self._part(role, part)

    def _part(self, role: Role, part: Any) -> None:
        kind = kind_of(part)
        if kind in REASONING_TYPES:
            self.omit("reasoning")
        elif (text := read_part(part, kind)) is not None:
            self.say(role, text)
        elif isinstance(part, dict) and (reader := self._reader_of(part, kind)):
            reader(part, self, role)
        elif isinstance(part, dict) and isinstance(text := part.get("text"), str) and text.strip():
            self.say(role, f"[{kind}] {text}")  # of an unknown type, and yet words for a person
        else:
            self.unknown(role, kind)

    def _reader_of(self, part: dict[str, Any], kind: str) -> PartReader | None:
        """Return the reader of a part, whichever family has it."""
        for family in self.families:
            if part.get("type"):
                if reader := find_reader(family.parts, kind):
                    return reader
            elif key := next((key for key in family.keys if key in part), None):
                return family.keys[key]
        return None

    def inner(self, message: Any) -> None:
        """Read a message inside the element, of whatever family, as turns of its own."""
        self.close()
        family = find_family(message, self.families)
        if family is None:
            self.fault(_unknown_shape(message))
        else:
            family.read(message, self)
        self.close()

    def knows(self, message: dict[str, Any]) -> bool:
        """Return whether any family reads a message."""
        return find_family(message, self.families) is not None

    def take_new(self, other: Reading) -> None:
        """Add what another reading has beyond what both begin with: each repeats what was said before."""
        known = 0
        for mine, theirs in zip(self._drafts, other._drafts, strict=False):
            if mine.gist != theirs.gist:
                break
            known += 1
        self.close()
        self._drafts += other._drafts[known:]
        self._is_readable = self._is_readable or other._is_readable
        self._unknown += other._unknown
        self._faults += other._faults
        self.omitted |= other.omitted  # of what is repeated, so are the omissions

    @property
    def has_anything(self) -> bool:
        """Whether anything at all was read so far, if only to be left out."""
        return bool(self._drafts or self.omitted or self._faults)

    def outcome(self) -> list[Draft] | Omission:
        """Return the drafts; the reason for none where nothing was to be read."""
        if self._is_readable:
            kept = (
                draft for draft in self._drafts if draft.role == "tool" or draft.calls or draft.text.strip()
            )
            return list(kept)
        if self._faults:
            return Omission(reason=self._faults[0], unreadable=True)
        if self._unknown:
            kinds = ", ".join(f"“{kind}”" for kind in list(dict.fromkeys(self._unknown))[:MAX_KINDS_NAMED])
            return Omission(reason=f"unknown content: {kinds}; expected {EXPECTED_CONTENT}", unreadable=True)
        if self.omitted:
            kind = next(iter(self.omitted))
            return Omission(reason=LEFT_OUT.get(kind, f"{kind} only"))
        return Omission(reason="empty message")

    @property
    def left_out(self) -> dict[str, int]:
        """What is missing from the turns, by kind, where there are turns."""
        lost = {"unknown content": len(self._unknown), "unreadable": len(self._faults)}
        return dict(self.omitted) | {kind: count for kind, count in lost.items() if count}

    def _turn_of(self, role: Role) -> Draft:
        if self._open is None or self._open.role != role:
            self._open = Draft(role=role)
            self._drafts.append(self._open)
        return self._open


def find_family(message: Any, families: tuple[Family, ...]) -> Family | None:
    """Return the family of a message: the first that matches; the last is the one of plain messages."""
    if not isinstance(message, dict):
        return None
    if message.keys() <= PLAIN and "role" in message:
        return families[-1]
    return next((family for family in families if family.matches(message)), None)


def find_reader(parts: Mapping[str, PartReader], kind: str) -> PartReader | None:
    """Return the reader of a type of part: by its name, else by the first pattern that fits."""
    if reader := parts.get(kind):
        return reader
    return next((reader for name, reader in parts.items() if "*" in name and fnmatchcase(kind, name)), None)


def _unknown_shape(message: Any) -> str:
    if not isinstance(message, dict):
        return f"{EXPECTED}, got {json_type(message)}"
    keys = ", ".join(f"“{key[:64]}”" for key in list(message)[:5]) or "nothing"
    return f"{EXPECTED}, got an object with {keys}"
