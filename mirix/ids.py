"""Identifiers: opaque strings with a speaking prefix, such as `proc-019a2b3c4d5e7f8a9b0c1d`.

The first 12 hex digits are milliseconds since 1970, so that new rows land at the right edge of their
index; the last 10 are random, so that ids cannot be counted through.
"""

from __future__ import annotations

import functools
import re
import secrets
import time
from collections.abc import Callable

ID = re.compile(r"[a-z]+-[0-9a-f]{22}")


def new_id(prefix: str) -> str:
    """Return a new id: prefix, hyphen, 22 hex digits."""
    return f"{prefix}-{time.time_ns() // 1_000_000:012x}{secrets.token_hex(5)}"


def is_id(text: str) -> bool:
    """Return whether a text is what `new_id` makes, of whatever prefix."""
    return ID.fullmatch(text) is not None


def id_factory(prefix: str) -> Callable[[], str]:
    """Return a field default that makes ids of one prefix; migrations can serialize it."""
    return functools.partial(new_id, prefix)
