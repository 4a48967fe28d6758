"""What a model answers, for the tests of the proposer that asks one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def operation(action: str, *experiences: Any, **fields: Any) -> dict[str, Any]:
    """An operation as a model tells it; experiences are ids, or have one."""
    empty = {"skill": "", "name": "", "description": "", "instructions": "", "triggers": [], "superseded": []}
    ids = [getattr(item, "pk", getattr(item, "id", item)) for item in experiences]
    return {"action": action, "experiences": ids, "replacements": [], "reason": "Because."} | empty | fields


def create(*experiences: Any, **fields: Any) -> dict[str, Any]:
    """A new skill, about cancelling an order unless the fields say otherwise."""
    page = {
        "name": "cancel-order",
        "description": "How an order is cancelled. Use when a user wants to cancel an order.",
        "instructions": "1. Ask for the reason.\n2. Call `cancel_order` with it.\n",
        "triggers": ["cancel my order"],
    }
    return operation("create", *experiences, **(page | fields))


def edit(
    skill: Any, *experiences: Any, changes: Iterable[tuple[str, ...]] = (), **fields: Any
) -> dict[str, Any]:
    """An edit; each change is (old, new) of the instructions, or (old, new, field)."""
    replacements = [
        {"field": change[2] if len(change) > 2 else "instructions", "old": change[0], "new": change[1]}
        for change in changes
    ]
    key = getattr(skill, "pk", skill)
    return operation("edit", *experiences, skill=key, replacements=replacements, **fields)


def answer(*operations: Any) -> str:
    """The text of an answer with these operations."""
    return json.dumps({"operations": list(operations)}, ensure_ascii=False)
