"""JSON as the standard has it, for whatever comes from outside: no NaN, no key twice in one object."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


def loads(text: str) -> Any:
    """Return the JSON value. Raises `ValueError` that says what is wrong, or `RecursionError`."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:64]!r} stands twice in one object")
    return result


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
"""For texts that go on behind a value; raises as `loads`."""
