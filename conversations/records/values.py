"""One JSON value of a source, or what is wrong there; and the words for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mirix import strict_json
from mirix.text import shorten

MAX_REASON_CHARS = 300


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
        raise Unreadable(not_json(error)) from error


def not_json(error: ValueError) -> str:
    """Return the reason for a text that is no JSON."""
    return f"not valid JSON: {shorten(str(error), MAX_REASON_CHARS)}"


def too_large(limit: int) -> str:
    """Return the reason for what is beyond the limit."""
    return f"larger than {limit / 1_000_000:g} MB, the limit for one session"
