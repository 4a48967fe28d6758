"""From the values of a source to its sessions: records as they come, then what single lines add up to."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any

from conversations.extraction.families import family_of
from conversations.extraction.hashing import canonical_hash
from conversations.extraction.langsmith import runs_of
from conversations.records import langsmith
from conversations.records.detection import Broken, Element, Record, detect, moment_of, sessions_in, unknown
from conversations.records.streams import Values
from conversations.records.values import Fault, Value, too_large
from mirix.text import clean_json

IN_MEMORY = 8_000_000
HASH_CHARS = 12
KEPT_ID_CHARS = 51
MISSES = 20
"""After so many values without one session or message, a source is taken for something else."""


def fitting_session_id(raw: str) -> str:
    """Return a recorded session's id if it may be one, else a legible one made from it, always the same."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", raw):
        return raw
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", raw).strip("-")[:KEPT_ID_CHARS]
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{kept}-{digest}" if kept else digest


class Reader:
    """The sessions of one source.

    `name` is what sessions without an id are called after, with their position; a source without a name, such
    as standard input, has them called after their first message. `limit` is in bytes, for one session.
    """

    def __init__(self, stream: IO[bytes], *, name: str, limit: int) -> None:
        self._values = Values(stream, limit=limit)
        self._name = name
        self._log = _Log(limit)
        self._records = 0
        self._contents = ""
        self._shape = ""

    @property
    def taken_for(self) -> str:
        """What the source was taken for, in words."""
        return ", ".join(part for part in (self._values.form, self._contents, self._shape) if part)

    def __iter__(self) -> Iterator[Record | Fault]:
        """Yield each session, and a fault for each value that is part of none."""
        misses: list[Fault] = []
        with self._log:
            for value in self._each():
                found = self._take(value)
                if isinstance(found, Fault):
                    misses.append(found)
                    if len(misses) < MISSES and not self._has_sessions:
                        continue
                    if not self._has_sessions:
                        self._contents = "no transcript"
                        yield Fault(line=0, reason=f"no transcript: {misses[0].reason}")
                        return
                yield from misses
                misses.clear()
                if isinstance(found, Record):
                    yield self._named(found)
            yield from misses
            for session in self._log.sessions():
                self._contents = self._contents or self._log.kind
                if isinstance(session, Record):
                    self._note_shape(session.messages)
                    session = self._named(session)
                yield session

    def _each(self) -> Iterator[Value | Fault]:
        """Yield the values of the source, those of a list of sessions one by one."""
        for value in self._values:
            listed = None if isinstance(value, Fault) else sessions_in(value.data)
            if listed is None or isinstance(value, Fault):
                yield value
            else:
                yield from (Value(line=value.line, data=item) for item in listed)

    def _take(self, value: Value | Fault) -> Record | Fault | None:
        if isinstance(value, Fault):
            return value
        try:
            found = detect(value.data)
        except Broken as error:
            return Fault(line=value.line, reason=str(error))
        if isinstance(found, Element):
            if self._log.add(found, value.line):
                return None
            return Fault(line=value.line, reason=unknown(value.data))
        self._records += 1
        self._note_shape(found.messages)
        self._contents = "a session a record" if self._records > 1 else "one session"
        return replace(found, line=value.line, position=self._records)

    @property
    def _has_sessions(self) -> bool:
        return bool(self._records) or not self._log.is_empty

    def _note_shape(self, messages: list[Any]) -> None:
        if not self._shape:
            families = (family_of(message) for message in messages[:MISSES])
            self._shape = next((family.name.replace("_", " ") for family in families if family), "")

    def _named(self, record: Record) -> Record:
        if record.session_id:
            return record
        position = f"-{record.position}" if record.position else ""
        if self._name:
            return replace(record, session_id=fitting_session_id(self._name + position), is_unnamed=True)
        first = canonical_hash(clean_json(record.messages[:1]))[:HASH_CHARS]
        return replace(record, session_id=f"session-{first}{position}", is_unnamed=True)


@dataclass(eq=False)
class _Part:
    """The lines of one session in the log: where they are, not what they hold."""

    line: int
    occurred_at: str
    places: array[int] = field(default_factory=lambda: array("Q"))
    size: int = 0


class _Log:
    """Single messages and lines of a source, put together by session; on disk as soon as they are many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: dict[str, _Part] = {}
        self._current = ""
        self._has_runs = False
        self._file: IO[bytes]

    def __enter__(self) -> _Log:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._parts

    @property
    def kind(self) -> str:
        """What the lines are together, in words."""
        if self._has_runs:
            return "recorded runs"
        if list(self._parts) == [""]:
            return "a list of messages"
        return f"a log of {len(self._parts)} session{'' if len(self._parts) == 1 else 's'}"

    def add(self, element: Element, line: int) -> bool:
        """Add a line to its session, or to the one before it; return whether there is one for it."""
        if not element.is_known and not element.session_id and not self._parts:
            return False
        key = element.session_id or self._current
        if key and "/" not in key:
            self._current = key
            if list(self._parts) == [""]:  # what stands before the first id belongs to it
                self._parts = {key: self._parts[""]}
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = _Part(line=line, occurred_at="")
        part.occurred_at = part.occurred_at or moment_of(element.value)
        self._has_runs = self._has_runs or bool(runs_of(element.value))
        text = json.dumps(element.value).encode() + b"\n"
        part.size += len(text)
        if part.size <= self._limit:
            part.places.append(self._file.seek(0, 2))
            self._file.write(text)
        return True

    def sessions(self) -> Iterator[Record | Fault]:
        """Yield the sessions, in the order of their first lines."""
        for key, part in self._parts.items():
            if part.size > self._limit:
                name = f"session {key}: " if key else ""
                yield Fault(line=part.line, reason=name + too_large(self._limit))
            else:
                yield Record(
                    messages=self._messages(part),
                    session_id=key,
                    occurred_at=part.occurred_at,
                    is_dated_loosely=True,
                    line=part.line,
                )

    def _messages(self, part: _Part) -> list[Any]:
        messages = []
        for place in part.places:
            self._file.seek(place)
            messages.append(json.loads(self._file.readline()))
        if len(messages) > 1 and all(runs_of(message) for message in messages):
            return [langsmith.as_one(messages)]
        return messages
