"""What this process has counted since it began, in the text that Prometheus reads. Pure.

Each process counts for itself and begins at 0. The web process shows its own numbers at `/metrics`; those of
a worker are shown by nobody. What is stored, and so is the same for all of them: `mirix.measures`. No label
holds what a caller wrote.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The bounds by which durations are sorted."""

Labels = tuple[tuple[str, str], ...]
Kind = Literal["counter", "gauge", "histogram"]
Sample = tuple[str, Labels, float]
"""What is appended to the name, the labels, and the number."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Family:
    """What stands under one name; each of `reads` is asked when the metrics are."""

    text: str
    kind: Kind
    reads: dict[Labels, Callable[[], float | list[Sample]]] = field(default_factory=dict)

    def samples(self) -> Iterable[Sample]:
        """Return the numbers as they stand, by label."""
        for labels, read in sorted(self.reads.copy().items()):  # others may publish meanwhile
            found = read()
            yield from found if isinstance(found, list) else [("", labels, found)]


_families: dict[str, Family] = {}


def publish(
    name: str,
    text: str,
    read: Callable[[], float | list[Sample]],
    kind: Kind = "counter",
    labels: Mapping[str, str] | None = None,
) -> None:
    """Have `read` asked for a number whenever the metrics are read; `text` says in a line what it is."""
    family = _families.setdefault(name, Family(text=text, kind=kind))
    family.reads[tuple((labels or {}).items())] = read


def exposition(stored: Mapping[str, Family] | None = None) -> str:
    """Return all that was published, and what else is given, by name."""
    lines = []
    for name, family in sorted((_families | dict(stored or {})).items()):
        lines += [f"# HELP {name} {family.text}", f"# TYPE {name} {family.kind}"]
        lines += [f"{name}{suffix}{_shown(labels)} {number}" for suffix, labels, number in family.samples()]
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


class Durations:
    """How long something took, sorted by `SECONDS`, for each set of labels that has come up."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text
        self._sorted: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, seconds: float, **labels: str) -> None:
        """Count one more that took so long."""
        key = tuple(labels.items())
        with self._lock:
            is_new = key not in self._sorted
            counts = self._sorted.setdefault(key, [0] * (len(SECONDS) + 1))
            counts[bisect_left(SECONDS, seconds)] += 1
            self._sums[key] = self._sums.get(key, 0.0) + seconds
        if is_new:
            publish(self._name, self._text, lambda: self._samples(key), kind="histogram", labels=labels)

    def of(self, **labels: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Decorate a function whose calls are counted, those that raise among them."""

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            @wraps(function)
            def timed(*args: P.args, **kwargs: P.kwargs) -> T:
                began = time.perf_counter()
                try:
                    return function(*args, **kwargs)
                finally:
                    self.add(time.perf_counter() - began, **labels)

            return timed

        return decorate

    def _samples(self, key: Labels) -> list[Sample]:
        with self._lock:
            counts, total = list(self._sorted[key]), self._sums[key]
        samples: list[Sample] = []
        so_far = 0
        for bound, count in zip((*(f"{bound:g}" for bound in SECONDS), "+Inf"), counts, strict=True):
            so_far += count
            samples.append(("_bucket", (*key, ("le", bound)), so_far))
        return [*samples, ("_sum", key, round(total, 6)), ("_count", key, so_far)]


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
