"""JSON as the standard has it, for whatever comes from outside: no NaN, no key twice in one object.

And no deeper than `MAX_DEPTH`, whatever the interpreter could bear: that differs from version to version.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from mirix.text import clean_text

MAX_DEPTH = 500


def loads(text: str) -> Any:
    """Return the JSON value. Raises `ValueError` that says what is wrong, `RecursionError` when too deep."""
    value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise RecursionError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _is_deeper(value: Any, depth: int) -> bool:
    """Return whether lists and objects stand in each other for more than `depth` levels; does not recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
    return bool(level)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:64]!r} stands twice in one object")
    together = "".join(result)
    if (not together.isascii() or "\0" in together) and len(set(map(clean_text, result))) < len(result):
        twice = Counter(map(clean_text, result)).most_common(1)[0][0]
        raise ValueError(f"the key {twice[:64]!r} stands twice in one object, in spellings that become one")
    return result


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
"""For texts that go on behind a value; raises as `loads`."""
