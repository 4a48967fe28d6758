"""JSON documents in pieces: the values of a list one by one, however long the list is."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from conversations.records.values import Fault, Unreadable, Value, not_json, too_large
from mirix import strict_json

PIECE = 1 << 16
SOMETHING = re.compile(r"[^ \t\r\n]")
CUT_SHORT = ("Unterminated string", "Invalid \\", "Invalid control")
"""How the decoder names a text that may only have been cut."""


def is_cut(error: json.JSONDecodeError) -> bool:
    """Return whether a text is no JSON because it ends too early."""
    return error.pos >= len(error.doc.rstrip()) or error.msg.startswith(CUT_SHORT)


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
                problem = not_json(error)
                data, end = json.JSONDecoder().raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            return error
        except ValueError as error:  # a number that no one can hold
            raise Unreadable(not_json(error)) from error
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
