"""JSON that was stored may have any shape: what a reader can use of it."""

from __future__ import annotations

from typing import Any


def as_dict(value: object) -> dict[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_texts(value: object) -> list[str]:
    """Return the texts in a list."""
    return [item for item in as_list(value) if isinstance(item, str)]


def as_numbers(value: object) -> dict[str, int]:
    """Return the whole numbers in an object."""
    return {name: number for name, number in as_dict(value).items() if type(number) is int}
