"""The account of a request: which of its messages became turns, which did not, and why. Pure.

A report names messages by index, many of one kind as spans `[first, last]`, so that a long history which
comes again takes no more room than a short one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Spans = list[list[int]]


@dataclass(frozen=True, kw_only=True)
class Line:
    """Messages that stand beside each other and of which the same became."""

    first: int
    last: int
    outcome: str
    """`stored`, `truncated`, `duplicate`, `skipped` or `unreadable`."""
    reason: str = ""


def spans(indexes: Iterable[int]) -> Spans:
    """Return indexes, in any order, as the fewest spans."""
    found: Spans = []
    for index in sorted(set(indexes)):
        if found and index == found[-1][1] + 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return found


def indexes_of(found: Spans) -> set[int]:
    """Return the indexes that spans hold."""
    return {index for first, last in found for index in range(first, last + 1)}


def lines(report: dict[str, Any], message_count: int) -> list[Line]:
    """Return what became of each message, in order."""
    skipped = {item["index"]: item for item in report.get("skipped", [])}
    truncated = indexes_of(report.get("truncated_at", []))
    duplicate = indexes_of(report.get("duplicate_at", []))

    def outcome(index: int) -> tuple[str, str]:
        if item := skipped.get(index):
            return ("unreadable" if item.get("unreadable") else "skipped"), str(item["reason"])
        if index in truncated:
            return "truncated", ""
        return ("duplicate" if index in duplicate else "stored"), ""

    found = []
    for (kind, reason), group in groupby(range(message_count), key=outcome):
        indexes = list(group)
        found.append(Line(first=indexes[0], last=indexes[-1], outcome=kind, reason=reason))
    return found
