"""Which filter tags a skill may carry: the pairs that all sessions behind it share. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from skills.content import MAX_FILTER_TAGS_CHARS, json_chars

OF_ONE_SESSION = "session_id"


def shared_tags(sources: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the key–value pairs that every source has, without `session_id`; of no sources, none.

    Values are compared as JSON, so that `1` and `true` differ and the order of keys does not matter.
    Pairs that do not fit into what a skill may carry are left out, the last ones by key.
    """
    shared: dict[str, Any] | None = None
    for tags in sources:
        if shared is None:
            shared = {key: value for key, value in tags.items() if key != OF_ONE_SESSION}
        else:
            shared = {
                key: value
                for key, value in shared.items()
                if key in tags and _canonical(tags[key]) == _canonical(value)
            }
    kept = shared or {}
    for key in sorted(kept, reverse=True):
        if json_chars(kept) <= MAX_FILTER_TAGS_CHARS:
            break
        del kept[key]
    return kept


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
