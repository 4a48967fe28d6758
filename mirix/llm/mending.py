"""Mends one damaged JSON object, and takes it only while no word was lost or made up. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import json_repair

from mirix.llm.lenient_json import unescaped

MAX_CHARS = 8_000
"""The mending takes time by the square of the length."""
CALL_COST = 200
"""What one mending costs beside its characters, in characters."""
WORDS = re.compile(r"[^\W\d_]+")
NULLS = frozenset({"null", "none", "nil", "undefined", "nan", "inf", "infinity"})
RUN_TOGETHER = re.compile(r"[,{]\s*[\"'“][\w-]{1,64}[\"'”]\s*:")
MAX_DEPTH = 50


class Mender:
    """Mends the pieces of one reply, within one bound of work."""

    def __init__(self) -> None:
        """Start with the whole bound."""
        self._work = MAX_CHARS**2

    def mend(self, piece: str) -> dict[str, Any] | None:
        """Return the object that `piece` was meant to be; None where that is not sure.

        A field must not hold what looks like the next field: there a quote was closed in the wrong place.
        """
        self._work -= (len(piece) + CALL_COST) ** 2
        if self._work < 0 or not piece.endswith("}") or not _balanced(piece):
            return None
        try:
            value = json_repair.repair_json(piece, return_objects=True, skip_json_loads=True)
        except Exception:  # noqa: BLE001 - whatever fails inside, the piece is not mended
            return None
        if not isinstance(value, dict) or not value:
            return None
        texts = list(_texts(value))
        if any(RUN_TOGETHER.search(text) for text in texts) or _words([unescaped(piece)]) != _words(texts):
            return None
        return value


def _balanced(piece: str) -> bool:
    """Return whether all brackets are closed: of a piece that was cut off nobody knows what is missing."""
    objects, lists = piece.count("{"), piece.count("[")
    return objects == piece.count("}") and lists == piece.count("]") and objects + lists <= MAX_DEPTH


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def _words(texts: list[str]) -> str:
    words = (word.casefold() for text in texts for word in WORDS.findall(text))
    return "".join(word for word in words if word not in NULLS)
