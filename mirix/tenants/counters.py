"""What can wait for people: the apps upstairs register what they count when they are ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse

from mirix.shapes import as_numbers
from mirix.tenants.models import Organization


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Something that can wait for people; `page` is the admin's list of it, `query` its filter."""

    kind: str
    one: str
    many: str
    count: Callable[[Organization], int]
    page: str
    query: str = ""

    def in_words(self, number: int) -> str:
        """Return `3 proposals`."""
        return f"{number} {self.one if number == 1 else self.many}"

    def url(self, organization: Organization) -> str:
        """Return the address of the list, for that organization alone."""
        query = "&".join(filter(None, [self.query, f"organization={organization.pk}"]))
        return f"{settings.MIRIX_PUBLIC_URL}{reverse(self.page)}?{query}"


_counters: dict[str, Counter] = {}


def register(counter: Counter) -> None:
    """Have `counter` asked for every notification."""
    _counters[counter.kind] = counter


def waiting(organization: Organization) -> dict[str, int]:
    """Return how much waits in an organization by kind, without what does not."""
    counts = {kind: counter.count(organization) for kind, counter in _counters.items()}
    return {kind: number for kind, number in counts.items() if number}


def known(counts: object) -> list[tuple[Counter, int]]:
    """Return the counters behind `counts`, as `waiting` returned them once; those of upper floors first."""
    numbers = as_numbers(counts)
    return [(_counters[kind], numbers[kind]) for kind in reversed(_counters) if kind in numbers]
