"""Days as people count them: of the zone that pages are shown in, and today by the clock of the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Self

from django.db import connection
from django.utils import timezone

MAX_DAYS = 3_700
"""The longest span that an address may ask for, in days."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Days from the first through the last."""

    first: date
    last: date

    @classmethod
    def of(cls, day: date) -> Self:
        """Return the span of one day."""
        return cls(first=day, last=day)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what `str` of a span wrote (`2026-05-04` or `2026-05-04..2026-05-06`); None for the rest."""
        first, dots, last = text.partition("..")
        try:
            span = cls(first=date.fromisoformat(first), last=date.fromisoformat(last if dots else first))
            span.moments  # noqa: B018  (whether such days have a beginning and an end)
        except (ValueError, OverflowError):
            return None
        return span if span.first <= span.last and len(span) <= MAX_DAYS else None

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}..{self.last}"

    @property
    def moments(self) -> tuple[datetime, datetime]:
        """When it begins, and when the day after it begins."""
        return start_of(self.first), start_of(self.last + timedelta(days=1))

    def __len__(self) -> int:
        return (self.last - self.first).days + 1

    def __iter__(self) -> Iterator[date]:
        return (self.first + timedelta(days=each) for each in range(len(self)))


def start_of(day: date) -> datetime:
    """Return when a day begins; the zone's clock may be put on or back on it."""
    return timezone.make_aware(datetime.combine(day, time.min))


def today() -> date:
    """Return the day that it is for the database, whose clock all hosts share; one query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return timezone.localtime(now).date()


def last_days(count: int) -> Span:
    """Return the last days, today the last; one query."""
    last = today()
    return Span(first=last - timedelta(days=count - 1), last=last)
