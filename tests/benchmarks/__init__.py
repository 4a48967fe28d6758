"""What `./run bench` measures: a module a benchmark, named in the table of `tests/bench.py`.

A module has `measure(tell, options) -> Report`: it runs in a process of its own on a fresh, migrated cluster,
says by `tell(line)` how far it is, and returns its figures. `options` are those of the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Report:
    """The figures of a benchmark: as data for `--json`, and as lines to read."""

    figures: dict[str, Any]
    lines: list[str]


def spread(values: list[float], digits: int = 0) -> dict[str, float]:
    """Return median, least and most of repeated measurements."""
    return {
        "median": round(median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
    }
