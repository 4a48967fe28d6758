"""From bytes to JSON values, one after the other, however large the source is.

JSON Lines and JSON documents are told apart by content. A document's top-level list is read item by item;
several documents may follow each other. Nothing larger than the limit is ever held.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

from mirix import strict_json
from mirix.text import shorten

GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 16
MAX_REASON_CHARS = 300
LINES = "JSON Lines"
DOCUMENT = "JSON"
SOMETHING = re.compile(r"[^ \t\r\n]")
LOOK_AHEAD = 100
CUT_SHORT = ("Unterminated string", "Invalid \\", "Invalid control")
OPENERS = (b"[", b"{")


@dataclass(frozen=True, kw_only=True)
class Value:
    """One JSON value of a source, and where it begins."""

    line: int
    data: Any


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What could not be read, and why; line 0 is the source as a whole."""

    line: int
    reason: str


class Unreadable(Exception):
    """A text that is no JSON value, and why."""


def decode(text: bytes) -> Any:
    """Return the one JSON value of a text; raises `Unreadable`."""
    try:
        return strict_json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise Unreadable("nested too deeply") from error
    except ValueError as error:
        raise Unreadable(_not_json(error)) from error


def _not_json(error: ValueError) -> str:
    return f"not valid JSON: {shorten(str(error), MAX_REASON_CHARS)}"


def too_large(limit: int) -> str:
    """Return the reason for what is beyond the limit."""
    return f"larger than {limit / 1_000_000:g} MB, the limit for one session"


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
            is_cut = isinstance(error.__cause__, json.JSONDecodeError) and _is_cut(error.__cause__)
            return DOCUMENT if is_cut and head.startswith(OPENERS) and not _is_json(second) else LINES
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


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Return whether a text is no JSON because it ends too early."""
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith(CUT_SHORT)


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(decode(line), dict | list)
    except Unreadable:
        return False


class Document:
    """JSON text that comes in pieces."""

    def __init__(self, piece: Callable[[int], bytes], *, limit: int, lines_before: int) -> None:
        self._piece = piece
        self._limit = limit
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._is_over = False
        self._lines_gone = lines_before
        self._counted = 0

    @property
    def line(self) -> int:
        """The line that is being read."""
        self._lines_gone += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._lines_gone + 1

    def values(self) -> Iterator[Value | Fault]:
        """Yield the top-level values; of a top-level list its items. Raises `Unreadable`."""
        while character := self._next():
            if character == "[":
                self._at += 1
                yield from self._items()
            else:
                yield self._value()

    def _items(self) -> Iterator[Value | Fault]:
        while self._next() != "]":
            yield self._value()
            if (character := self._next()) == ",":
                self._at += 1
                if self._next() == "]":
                    raise Unreadable("not valid JSON: a comma before the end of the list")
            elif character != "]":
                raise Unreadable("not valid JSON: expected a comma or the end of the list")
        self._at += 1

    def _next(self) -> str:
        """Return the next character that is no white space, not yet taken; empty at the end."""
        while True:
            if found := SOMETHING.search(self._text, self._at):
                self._at = found.start()
                return found.group()
            self._at = len(self._text)
            self._drop_read()
            if not self._more():
                return ""

    def _value(self) -> Value | Fault:
        self._drop_read()
        line, last = self.line, None
        while True:
            found = self._try_value()
            if not isinstance(found, json.JSONDecodeError):
                data, self._at, problem = found
                return Fault(line=line, reason=problem) if problem else Value(line=line, data=data)
            if len(self._text) - self._at > self._limit:
                raise Unreadable(too_large(self._limit))
            is_same = last is not None and (found.pos, found.msg) == last
            last = (found.pos, found.msg)
            if (is_same and not found.msg.startswith(CUT_SHORT)) or not self._more():
                raise Unreadable(f"not valid JSON: {found.msg}")

    def _try_value(self) -> tuple[Any, int, str] | json.JSONDecodeError:
        """Return the value here, where it ends, and why it is refused; or why there is none (yet)."""
        problem = ""
        try:
            try:
                data, end = strict_json.DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                raise
            except ValueError as error:  # refused, but its end can be found
                problem = _not_json(error)
                data, end = json.JSONDecoder().raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            return error
        except ValueError as error:  # a number that no one can hold
            raise Unreadable(_not_json(error)) from error
        except RecursionError as error:
            raise Unreadable("nested too deeply") from error
        if end == len(self._text) and not self._is_over and self._text[end - 1] not in '}]"':
            return json.JSONDecodeError("Unterminated string or number", self._text, self._at)
        return data, end, problem

    def _drop_read(self) -> None:
        """Forget what was read, once it is the larger part: so all copying together stays in proportion."""
        if self._at * 2 >= len(self._text):
            _ = self.line  # counts what goes
            self._text = self._text[self._at :]
            self._at = self._counted = 0

    def _more(self) -> bool:
        """Get another piece, as large as what is held; return whether there was one."""
        if self._is_over:
            return False
        piece = self._piece(max(PIECE, len(self._text) - self._at))
        self._is_over = not piece
        try:
            self._text += self._decoder.decode(piece, final=self._is_over)
        except UnicodeDecodeError as error:
            raise Unreadable(f"not UTF-8: {error.reason}") from error
        return not self._is_over
