"""JSON as models write it, where the meaning is plain: a reader that bends the rules and never guesses. Pure.

It takes comments, commas too many or (at a line end) too few, single and typographic quotes, keys and single
words without quotes, raw line breaks in strings, Python's and JavaScript's literals, full-width colons and
commas. NaN and the infinities become null. It does not take what has two readings: a quote inside a string
that is not escaped, a key that stands twice with two values, two values side by side.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 100
TOKEN_COST = 8
"""What one token costs beside its characters, in characters."""
ELLIPSIS = "…"
"""Stands in a list for "and so on"."""

GAP = re.compile(r"[\s\ufeff]+|(?://|#)[^\n]*")
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?![\w.])(\s*%)?")
WORD = re.compile(r"-?[^\W\d][\w$.-]*")
KEY = re.compile(r"[\w$][\w$.-]*(?=\s*[:：])")
NEXT_KEY = re.compile(r"[\"'“]?[\w$-]{1,64}[\"'”]?\s*[:：]")
AFTER_STRING = re.compile(r"\s*(?:[,:}\]，：]|\Z)")
DOUBLE = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
LITERALS = {
    "true": True,
    "false": False,
    **dict.fromkeys(
        ("null", "none", "nil", "undefined", "nan", "-nan", "infinity", "-infinity", "inf", "-inf")
    ),
}
CLOSING = {"'": "'", "‘": "’", "’": "’", "‚": "‘’", "“": "”“", "”": "”", "„": "“”", "«": "»"}
MAX_NUMBER_CHARS = 300


class Damaged(ValueError):
    """What stands at `position` has no single reading."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class CutOff(Damaged):
    """The text ends inside the value."""


class TooDeep(Damaged):
    """The value is nested deeper than `MAX_DEPTH`."""


class Exhausted(Exception):
    """The work that a reader may do on its text is done."""


class Reader:
    """Reads values out of one text, wherever they begin; all of them together within one bound of work."""

    def __init__(self, text: str, *, work: int) -> None:
        """Take the `text`; `work` is how many characters may be looked at, counting those looked at again."""
        self.text = text
        self._work = work

    def value(self, position: int, depth: int = 0) -> tuple[Any, int]:
        """Return the value that begins at `position`, and where it ends. Raises `Damaged`, `Exhausted`."""
        if depth > MAX_DEPTH:
            raise TooDeep(f"nested deeper than {MAX_DEPTH} levels", position)
        char = self.text[position : position + 1]
        if char == "{":
            return self._object(position, depth)
        if char == "[":
            return self._list(position, depth)
        if char == '"' or char in CLOSING:
            return self._string(position)
        return self._bare(position)

    def gap(self, position: int) -> int:
        """Return where the white space and the comments from `position` on end."""
        while True:
            if self.text.startswith("/*", position):
                end = self.text.find("*/", position) + 2
                if end < 2:
                    return self.spend(position, len(self.text))
                position = self.spend(position, end)
            elif found := GAP.match(self.text, position):
                position = self.spend(position, found.end())
            else:
                return position

    def separator(self, position: int) -> int:
        """Return where the commas from `position` on, with what stands between them, end."""
        position = self.gap(position)
        while self.text[position : position + 1] in (",", "，"):
            position = self.gap(position + 1)
        return position

    def spend(self, start: int, end: int) -> int:
        """Count the characters from `start` to `end` as looked at; return `end`. Raises `Exhausted`."""
        self._work -= end - start + TOKEN_COST
        if self._work < 0:
            raise Exhausted
        return end

    def _list(self, start: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        position = self.separator(self.spend(start, start + 1))
        while True:
            char = self.text[position : position + 1]
            if char == "]":
                return items, position + 1
            if not char:
                raise CutOff("the text ends in a list", start)
            item, end = self.value(position, depth + 1)
            items.append(item)
            position = self.separator(end)
            apart = "".join(self.text[end:position].split())
            if not apart and self.text[position : position + 1] not in ("]", "{", ""):
                raise Damaged("two values stand side by side", end)

    def _object(self, start: int, depth: int) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        position = self.separator(self.spend(start, start + 1))
        while True:
            char = self.text[position : position + 1]
            if char == "}":
                return result, position + 1
            if not char:
                raise CutOff("the text ends in an object", start)
            key, end = self._key(position)
            position = self.gap(end)
            char = self.text[position : position + 1]
            if char not in (":", "："):
                raise (Damaged if char else CutOff)("no colon after a key", position)
            position = self.gap(position + 1)
            item, end = self.value(position, depth + 1)
            if key in result and result[key] != item:
                raise Damaged("a key stands twice with two values", position)
            result[key] = item
            position = self.separator(end)
            apart = self.text[end:position]
            char = self.text[position : position + 1]
            if char in ("}", "") or "," in apart or "，" in apart:
                continue
            if "\n" not in apart or not NEXT_KEY.match(self.text, position):
                raise Damaged("no comma after a value", end)

    def _key(self, position: int) -> tuple[str, int]:
        if self.text[position] == '"' or self.text[position] in CLOSING:
            return self._string(position)
        if found := KEY.match(self.text, position):
            return found.group(), self.spend(position, found.end())
        self.spend(position, position)
        raise Damaged("no key", position)

    def _string(self, start: int) -> tuple[str, int]:
        if self.text.startswith('"""', start):
            end = self.text.find('"""', start + 3)
            if end < 0:
                self.spend(start, len(self.text))
                raise CutOff("the text ends in a string", start)
            return self.text[start + 3 : end], self.spend(start, end + 3)
        if self.text[start] == '"':
            found = DOUBLE.match(self.text, start)
            if not found:
                self.spend(start, len(self.text))
                raise CutOff("the text ends in a string", start)
            self.spend(start, found.end())
            return unescaped(found.group(1)), found.end()
        closing = CLOSING[self.text[start]]
        # An apostrophe is no end: what ends such a string has a mark of JSON after it.
        position = start + 1
        while position < len(self.text):
            char = self.text[position]
            if char == "\\":
                position += 1
            elif char in closing and AFTER_STRING.match(self.text, position + 1):
                self.spend(start, position)
                return unescaped(self.text[start + 1 : position]), position + 1
            position += 1
        self.spend(start, position)
        raise CutOff("the text ends in a string", start)

    def _bare(self, position: int) -> tuple[Any, int]:
        text = self.text
        if not text[position : position + 1]:
            raise CutOff("the text ends before a value", position)
        if text.startswith(("...", "…"), position):
            return ELLIPSIS, self.spend(position, position + (1 if text[position] == "…" else 3))
        if found := NUMBER.match(text, position):
            end = self.spend(position, found.end())
            if end == len(text):
                raise CutOff("the text ends in a number", position)
            return _number(found, position), end
        if (found := WORD.match(text, position)) and AFTER_STRING.match(text, found.end()):
            end = self.spend(position, found.end())
            if end == len(text) and position > 0:
                raise CutOff("the text ends in a word", position)
            return LITERALS.get(found.group().lower(), found.group()), end
        self.spend(position, position)
        raise Damaged("no value", position)


def _number(found: re.Match[str], position: int) -> Any:
    text = found.group()
    if len(text) > MAX_NUMBER_CHARS:
        raise Damaged("a number without end", position)
    if found.group(1):
        return text
    try:
        return json.loads(text)
    except ValueError:  # `.5`, `5.`, `+5`, `007`
        return float(text) if any(mark in text for mark in ".eE") else int(text)


def unescaped(body: str) -> str:
    """Return what the inside of a string stands for; an escape that JSON does not know stays as it is."""
    if "\\" not in body:
        return body
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return ESCAPE.sub(_character, body).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(found: re.Match[str]) -> str:
    name = found.group(1)
    if len(name) > 1:
        return chr(int(name[1:], 16))
    if name in "\"'\\/`":
        return name
    return ESCAPES.get(name, found.group())
