"""One hash for one JSON value, however it is spelled; and hashes of growing histories."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from mirix.text import clean_json

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_hash(value: Any) -> str:
    """Return SHA-256 (hex) over the canonical JSON of a cleaned value.

    Whole floats count as integers: the database gives JSON numbers back in its own spelling, and what is
    read from there must hash as it did when it came.
    """
    return hashlib.sha256(CANONICAL.encode(_canonical(value)).encode()).hexdigest()


def turn_hash(*, role: str, text: str, calls: Iterable[Any] = (), answers: str = "") -> str:
    """Return what tells a turn from others: what is read from its message, none of the fields around it.

    So a message that comes back as parts, or with other markers of a transport or a cache, is the same one.
    `calls` are ids, names and arguments; `answers` is the id, else the name, that a tool's result gives. A
    result that is JSON counts as the value that it is.
    """
    said = _canonical(_value_of(text)) if role == "tool" else text
    # By hand, in the order of canonical JSON: encoding a single string costs a tenth of encoding an object.
    encode = CANONICAL.encode
    spelled = f'"content":{encode(said)},"role":{encode(role)}}}'
    if made := list(calls):
        spelled = f'"calls":{encode(_canonical(made))},{spelled}'
    if answers:
        spelled = f'"answers":{encode(answers)},{spelled}'
    return hashlib.sha256(f"{{{spelled}".encode()).hexdigest()


def _value_of(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return text
    try:
        return clean_json(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _canonical(value: Any) -> Any:
    if isinstance(value, str):  # as most are
        return value
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
