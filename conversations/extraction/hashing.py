"""One hash for one JSON value, however it is spelled; and hashes of growing histories."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def canonical_hash(value: Any) -> str:
    """Return SHA-256 (hex) over the canonical JSON of a cleaned value.

    Whole floats count as integers: the database gives JSON numbers back in its own spelling, and what is
    read from there must hash as it did when it came.
    """
    canonical = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    return value


def chain(hashes: Iterable[str], start: str = "") -> str:
    """Return the hash of a history: of `start`, the hash of what came before, and each turn after it."""
    for item in hashes:
        start = hashlib.sha256(f"{start}{item}".encode()).hexdigest()
    return start
