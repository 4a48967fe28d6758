"""What is registered: every URL pattern, and the tables that say who may do what with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True)
class Route:
    """A registered pattern: its text as in `urls.py`, its full name, and the view where DRF made it."""

    path: str
    name: str
    view: Any = None


def registered() -> list[Route]:
    """Return every pattern of the project."""
    return list(_walk(get_resolver(), "", ""))


def _walk(resolver: URLResolver, prefix: str, namespace: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            view = entry.callback if hasattr(entry.callback, "cls") else None
            yield Route(path, namespace + (entry.name or ""), view)
        else:
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry, path, inner)


@dataclass(frozen=True)
class Row:
    """Statuses of one route under some methods, by column of the table."""

    route: str
    methods: tuple[str, ...]
    statuses: dict[str, int]

    def __str__(self) -> str:
        return f"{self.route} {','.join(self.methods)}"


def read_table(text: str) -> list[Row]:
    """Read a table: a head line with the columns, then each route with its rows, which begin with methods."""
    columns, *lines = [line for line in text.splitlines() if line.strip()]
    rows: list[Row] = []
    route = ""
    for line in lines:
        if not line.startswith(" "):
            route = line.strip()
            continue
        methods, *statuses = line.split()
        assert len(statuses) == len(columns.split()), f"{route} {methods}: one status for each of {columns}"
        named = dict(zip(columns.split(), map(int, statuses), strict=True))
        rows.append(Row(route, tuple(methods.split(",")), named))
    return rows


def others(rows: list[Row], statuses: dict[str, int]) -> list[Row]:
    """Return a row for each route with the methods that its rows do not name."""
    named: dict[str, set[str]] = {}
    for row in rows:
        named.setdefault(row.route, set()).update(row.methods)
    return [
        Row(route, tuple(method for method in METHODS if method not in methods), statuses)
        for route, methods in named.items()
    ]


def gaps(rows: list[Row], routes: Collection[str]) -> list[str]:
    """Return in words what a table lacks, and what it has too much of."""
    listed = {row.route for row in rows}
    missing, spare = sorted(set(routes) - listed), sorted(listed - set(routes))
    return [
        *(f"{route} is not there: add it with a status for each caller" for route in missing),
        *(f"{route} is there, and is no route: take it out" for route in spare),
    ]
