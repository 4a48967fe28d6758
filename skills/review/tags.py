"""Which filter tags a skill may carry: the pairs that all sessions behind it share. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

OF_ONE_SESSION = "session_id"


def shared_tags(sources: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the key–value pairs that every source has, without `session_id`; of no sources, none.

    Values are compared as JSON, so that `1` and `true` differ and the order of keys does not matter.
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
    return shared or {}


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
