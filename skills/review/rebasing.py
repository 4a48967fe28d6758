"""Two texts that began with one, brought together. Pure.

Each side's change is taken where it does not touch the other's: field by field, and within a text line by
line. What both have changed is for a person to decide.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from skills.content import Content
from skills.evolution.anchors import AnchorsRefused, apply, between
from skills.review.tags import shared_tags


@dataclass(frozen=True, kw_only=True)
class Merge:
    """Two texts that began with one: what each field becomes, and which fields both have changed."""

    content: Content
    both: frozenset[str]


def merged(*, base: Content, theirs: Content, mine: Content) -> Merge:
    """Take from each side the fields that it alone changed; where both did, keep mine and name the field."""
    fields = {}
    both = set()
    for name, value in mine.as_fields().items():
        before, other = getattr(base, name), getattr(theirs, name)
        fields[name] = other if value == before else value
        if value != before and other not in (before, value):
            both.add(name)
    return Merge(content=replace(mine, **fields), both=frozenset(both))


def rebased(*, base: Content, theirs: Content, mine: Content) -> Content | None:
    """Return `theirs` with the change that `mine` makes to `base`; None where both change the same part.

    Of a text that both changed, the lines of one change must stand in the other as they were, and it must
    make no difference which change comes first. Of triggers and examples each side's additions and removals
    are taken, of filter tags the pairs that both have.
    """
    merge = merged(base=base, theirs=theirs, mine=mine)
    fields = {}
    for name in merge.both:
        together = _TOGETHER.get(name, _none)
        fields[name] = together(getattr(base, name), getattr(theirs, name), getattr(mine, name))
    return None if any(value is None for value in fields.values()) else replace(merge.content, **fields)


def _none(base: Any, theirs: Any, mine: Any) -> None:
    """Two values of which only one can be."""


def _texts(base: str, theirs: str, mine: str) -> str | None:
    own, other = between(base, mine), between(base, theirs)
    try:
        text = apply(theirs, [change for change in own if change not in other])
        same = text == apply(mine, [change for change in other if change not in own])
    except AnchorsRefused:
        return None
    return text if same else None


def _lists(base: list[Any], theirs: list[Any], mine: list[Any]) -> list[Any]:
    before, own, other = ({_canonical(item) for item in items} for items in (base, mine, theirs))
    kept = [item for item in theirs if (key := _canonical(item)) in own or key not in before]
    return kept + [item for item in mine if (key := _canonical(item)) not in before and key not in other]


def _tags(base: dict[str, Any], theirs: dict[str, Any], mine: dict[str, Any]) -> dict[str, Any]:
    return shared_tags([theirs, mine])


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


_TOGETHER: dict[str, Callable[[Any, Any, Any], Any]] = {
    "description": _texts,
    "instructions": _texts,
    "triggers": _lists,
    "examples": _lists,
    "filter_tags": _tags,
}
