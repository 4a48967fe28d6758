"""What the columns of the original hold, read from their text. Pure.

Every column is read as text and understood here: PostgreSQL cannot cast each value that it lets in (escaped
NUL in a `json` column), and a table altered by hand may have a column of another type. `None` is NULL.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from datetime import UTC, datetime
from typing import Any

from mirix.text import clean_json, clean_text
from skills.interop.legacy import is_too_deep, parsed

Row = dict[str, str | None]
"""The columns of a row that its table has, as text."""

HASH_DIGITS = 22
NOBODY = "\x00"
"""No text of PostgreSQL holds NUL."""
MAX_DIGITS = 4_000
"""More than that Python reads of no number."""
JSON_TYPES = ("json", "jsonb")
UNSTORABLE = re.compile(r"[\ud800-\udfff]|(?<!\\)(?:\\\\)*\\u0000")


def text(value: str | None) -> str:
    """Return a text as it can be stored; NULL is empty."""
    return clean_text(value or "")


def reference(value: str | None) -> str:
    """Return the id that a column refers to; NULL refers to none, which the empty text may do."""
    return NOBODY if value is None else value


def flag(value: str | None) -> bool:
    """Return whether a boolean is true; NULL and whatever is no boolean are not."""
    return (value or "").strip().lower() in ("t", "true", "1", "yes", "on")


def moment(value: str | None) -> datetime | None:
    """Return a time in UTC, which is meant where no offset stands; None where it is none to be stored."""
    try:
        found = datetime.fromisoformat((value or "").strip())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # infinity, years before Christ or after 9999
        return None


def unit(value: str | None) -> float | None:
    """Return a number from 0 to 1, one beyond it as the nearer end; None for what is no number."""
    try:
        found = float(value or "nan")
    except ValueError:
        return None
    return None if math.isnan(found) else min(1.0, max(0.0, found))


def json_value(value: str | None) -> Any:
    """Return a JSON value, cleaned; NULL and JSON's null are None, what is no JSON is its text."""
    return None if value is None else clean_json(parsed(value))


def digest(*parts: str) -> str:
    """Return the 22 hex digits that tell a thing of the original by what names it there; for ids of ours."""
    joined = "\x1f".join(parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def fitting_id(row: Row, kind: str, limit: int) -> str:
    """Return the id of a row, or one made from it where it cannot be stored as it stands."""
    raw = row["id"] or ""
    return raw if 0 < len(raw) <= limit and text(raw) == raw else f"{kind}-{digest(kind, raw)}"


def numbered_value(value: str | None, odd: list[str] | None = None) -> Any:
    """Return a JSON value, cleaned, its numbers as numbers where they can be had so.

    Those that cannot, as NaN and 1e999, are their text and added to `odd`. What nests deeper than 100 levels
    is its text, like what is no JSON.
    """
    if value is None or is_too_deep(value):
        return value and text(value)

    def kept(number: str) -> str:
        if odd is not None:
            odd.append(number)
        return number

    try:
        found = json.loads(
            value or "null",
            parse_int=lambda number: int(number) if len(number) <= MAX_DIGITS else kept(number),
            parse_float=lambda number: decimal if math.isfinite(decimal := float(number)) else kept(number),
            parse_constant=kept,
        )
    except ValueError:
        return json_value(value)
    return clean_json(found)


def has_unstorable(value: str | None) -> bool:
    """Return whether the text of a JSON value holds characters that PostgreSQL's text cannot."""
    if not value or "\\u" not in value:
        return False
    try:
        return UNSTORABLE.search(json.dumps(json.loads(value), ensure_ascii=False)) is not None
    except (ValueError, RecursionError):
        return False
