"""From bytes to JSON values, one after the other, however large the source is.

JSON Lines and JSON documents are told apart by content. A document's top-level list is read item by item;
several documents may follow each other. Nothing larger than the limit is ever held.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections import deque
from collections.abc import Iterator
from typing import IO, Any, cast

from conversations.records.documents import PIECE, Document, is_cut
from conversations.records.values import Fault, Unreadable, Value, decode, too_large

GZIP_MAGIC = b"\x1f\x8b"
LINES = "JSON Lines"
DOCUMENT = "JSON"
LOOK_AHEAD = 100
OPENERS = (b"[", b"{")


def unpacked(stream: IO[bytes]) -> IO[bytes]:
    """Return a source's bytes as they were before gzip, if it is gzip."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(_Raw(stream))
    if buffered.peek(2)[:2] == GZIP_MAGIC:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=buffered))
    return buffered


class _Raw(io.RawIOBase):
    """Any stream of bytes as the ground of a buffered one; not closed with it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


class Values:
    """The JSON values of one source, in order; faults in between. `form` says how they stand in it."""

    def __init__(self, stream: IO[bytes], *, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._ahead: deque[bytes] = deque()
        self._blank = 0
        """Blank lines before the first one that holds something."""
        self.form = ""

    def __iter__(self) -> Iterator[Value | Fault]:
        """Yield values and faults; what is wrong with the source itself ends it with a fault."""
        try:
            self._stream = unpacked(self._stream)
            self.form = self._find_form()
            yield from self._lines() if self.form == LINES else self._document()
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            yield Fault(line=0, reason=f"cannot be unpacked: {error}")
        except OSError as error:
            yield Fault(line=0, reason=f"cannot be read: {error.strerror or error}")

    def _find_form(self) -> str:
        """Look at the first two lines that hold something, and decide."""
        first = self._first()
        second = self._second() if first else b""
        head = _bare(first)
        if head == b"[":
            return DOCUMENT
        if len(first) > self._limit:
            return DOCUMENT if head.startswith(b"[") else LINES
        try:
            value = decode(first)
        except Unreadable as error:
            may_go_on = isinstance(error.__cause__, json.JSONDecodeError) and is_cut(error.__cause__)
            return DOCUMENT if may_go_on and head.startswith(OPENERS) and not _is_json(second) else LINES
        return DOCUMENT if isinstance(value, list) and not second else LINES

    def _first(self) -> bytes:
        """Return the first line that is not blank, and keep it for reading."""
        while line := self._stream.readline(self._limit + 1):
            if _bare(line):
                self._ahead.append(line)
                return line
            self._blank += line.endswith(b"\n")
        return b""

    def _second(self) -> bytes:
        """Return the next line that is not blank, if it comes soon, and keep what was read."""
        for _ in range(LOOK_AHEAD):
            line = self._stream.readline(self._limit + 1)
            self._ahead.append(line)
            if not line or _bare(line):
                return line
        return b""

    def _lines(self) -> Iterator[Value | Fault]:
        number = self._blank
        while line := self._ahead.popleft() if self._ahead else self._stream.readline(self._limit + 1):
            number += 1
            if len(line) > self._limit:
                self._skip_line(line)
                yield Fault(line=number, reason=too_large(self._limit))
            elif _bare(line):
                try:
                    yield Value(line=number, data=decode(line))
                except Unreadable as error:
                    yield Fault(line=number, reason=str(error))

    def _skip_line(self, line: bytes) -> None:
        while line and not line.endswith(b"\n"):
            line = self._ahead.popleft() if self._ahead else self._stream.readline(PIECE)

    def _document(self) -> Iterator[Value | Fault]:
        document = Document(self._piece, limit=self._limit, lines_before=self._blank)
        try:
            yield from document.values()
        except Unreadable as error:
            yield Fault(line=document.line, reason=f"{error}; the rest of the file is left out")

    def _piece(self, size: int) -> bytes:
        return self._ahead.popleft() if self._ahead else self._stream.read(size)


def _bare(line: bytes) -> bytes:
    return line.removeprefix(codecs.BOM_UTF8).strip()


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(decode(line), dict | list)
    except Unreadable:
        return False
