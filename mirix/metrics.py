"""What this process has counted since it began, in the text that Prometheus reads. Pure.

Each process counts for itself and begins at 0. The web process shows its own numbers at `/metrics`; those of
a worker are shown by nobody. No label holds what a caller wrote.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What stands under one name."""

    text: str
    kind: Literal["counter", "gauge"]
    reads: dict[Labels, Callable[[], float]] = field(default_factory=dict)


_families: dict[str, Family] = {}


def publish(
    name: str,
    text: str,
    read: Callable[[], float],
    kind: Literal["counter", "gauge"] = "counter",
    labels: Mapping[str, str] | None = None,
) -> None:
    """Have `read` asked for a number whenever the metrics are read; `text` says in a line what it is."""
    family = _families.setdefault(name, Family(text=text, kind=kind))
    family.reads[tuple((labels or {}).items())] = read


def exposition() -> str:
    """Return all that was published, by name."""
    lines = []
    for name, family in sorted(_families.items()):
        lines += [f"# HELP {name} {family.text}", f"# TYPE {name} {family.kind}"]
        # Others may publish meanwhile.
        lines += [f"{name}{_shown(labels)} {read()}" for labels, read in sorted(family.reads.copy().items())]
    return "\n".join([*lines, ""])


def _shown(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


class Counts:
    """Numbers under one name that grow, one for each set of labels that has come up."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text
        self._counts: dict[Labels, int] = {}
        self._lock = threading.Lock()

    def add(self, **labels: str) -> None:
        """Count one more."""
        key = tuple(labels.items())
        with self._lock:
            is_new = key not in self._counts
            self._counts[key] = self._counts.get(key, 0) + 1
        if is_new:
            publish(self._name, self._text, lambda: self._counts[key], labels=labels)


class CountingMiddleware:
    """Counts every request that reaches the application."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        """Pass the request on and count its answer."""
        response = self.get_response(request)
        method = request.method if request.method in METHODS else "other"
        requests.add(method=method, status=str(response.status_code))
        return response


requests = Counts("mirix_http_requests_total", "Requests that were answered, by method and status.")
_began = time.time()
publish(
    "process_start_time_seconds",
    "When this process began to count, in seconds since 1970.",
    lambda: round(_began, 3),
    kind="gauge",
)
