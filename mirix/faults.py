"""What the log says of an exception: where and what kind, and nothing that anybody wrote. Pure.

The words of an exception may quote the value that caused it: those of PostgreSQL the row, those of Python's
`ValueError` and `LookupError` what could not be read. So the former keep their first line, unless they are
about a value, and the latter their kind. Other exceptions, our own among them, keep their words.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from mirix.text import shorten

MAX_CHARS = 500
QUOTES_VALUES = (ValueError, LookupError)
DATA_EXCEPTION = "22"
"""The class of SQL states that are about a value."""
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def words_of(error: BaseException) -> str:
    """Return the kind of an exception and, where they quote nobody, its words."""
    kind = type(error).__name__
    words = _words(error)
    return f"{kind}: {shorten(words, MAX_CHARS)}" if words else kind


def trace_of(error: BaseException) -> str:
    """Return the traceback of an exception and of those that led to it, in the order of Python's own."""
    parts = []
    for each, link in _chain(error):
        if each.__traceback__ is not None:
            parts.append("Traceback (most recent call last):\n")
            parts += traceback.format_tb(each.__traceback__)
        parts.append(f"{words_of(each)}\n{link}")
    return "".join(parts).rstrip("\n")


def _words(error: BaseException) -> str:
    database = next((each for each in (error, error.__cause__) if hasattr(each, "sqlstate")), None)
    if database is None:
        return "" if isinstance(error, QUOTES_VALUES) else str(error)
    if (database.sqlstate or "").startswith(DATA_EXCEPTION):
        return f"SQL state {database.sqlstate}"
    return str(error).strip().partition("\n")[0]


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """Yield the exceptions that led to `error` and then that one, each with what stands behind it."""
    found: list[tuple[BaseException, str]] = []
    seen: set[int] = set()
    each: BaseException | None = error
    link = ""
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        found.append((each, link))
        if each.__cause__ is not None:
            each, link = each.__cause__, CAUSE
        else:
            each, link = None if each.__suppress_context__ else each.__context__, CONTEXT
    yield from reversed(found)
