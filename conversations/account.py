"""The account of a request: which of its messages became turns, which did not, and why. Pure.

A report names messages by index, many of one kind as spans `[first, last]`, so that a long history which
comes again takes no more room than a short one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mirix.shapes import as_dict, as_list, as_numbers

Spans = list[list[int]]
SPANS = ("truncated_at", "duplicate_at", "unread_at")


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
    skipped = {item["index"]: item for item in _skipped_in(report)}
    truncated = indexes_of(_spans_in(report.get("truncated_at")))
    duplicate = indexes_of(_spans_in(report.get("duplicate_at")))

    def outcome(index: int) -> tuple[str, str]:
        if item := skipped.get(index):
            return ("unreadable" if item.get("unreadable") else "skipped"), item["reason"]
        if index in truncated:
            return "truncated", ""
        return ("duplicate" if index in duplicate else "stored"), ""

    found = []
    for (kind, reason), group in groupby(range(message_count), key=outcome):
        indexes = list(group)
        found.append(Line(first=indexes[0], last=indexes[-1], outcome=kind, reason=reason))
    return found


def readable(report: dict[str, Any]) -> dict[str, Any]:
    """Return of a stored report what has the shape that the API shows."""
    counts = {"stored": 0, "truncated": 0, "duplicate": 0}
    counts |= {name: number for name, number in as_numbers(report).items() if name in counts}
    spans = {name: _spans_in(report[name]) for name in SPANS if name in report}
    found: dict[str, Any] = {
        **counts,
        **spans,
        "skipped": [
            {name: item[name] for name in ("index", "reason", "unreadable") if name in item}
            for item in _skipped_in(report)
        ],
        "roles": as_numbers(report.get("roles")),
    }
    if "omitted" in report:
        found["omitted"] = as_numbers(report["omitted"])
    if "unread_turns" in report:
        turns = as_dict(report["unread_turns"])
        found["unread_turns"] = {index: _spans_in(numbers) for index, numbers in turns.items()}
    return found


def _skipped_in(report: dict[str, Any]) -> list[dict[str, Any]]:
    told = [item for item in as_list(report.get("skipped")) if isinstance(item, dict)]
    return [item | {"reason": str(item.get("reason", ""))} for item in told if type(item.get("index")) is int]


def _spans_in(value: object) -> Spans:
    return [span for span in as_list(value) if isinstance(span, list) and [*map(type, span)] == [int, int]]
