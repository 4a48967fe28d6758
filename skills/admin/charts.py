"""Charts of days: where each bar stands and what it says. Pure; a template draws them as SVG.

A chart is drawn on the server, in a box of its own units that stretches over its place; every bar is a link
to the rows that it counts and says so in words, and the table below has all of it as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from mirix.days import Span
from skills.selectors.days import Amount, Days

WIDTH, HEIGHT = 300, 100
"""Of the box, in its own units."""
GAP = 0.28
"""What share of a day's place stays empty."""
MIN_HEIGHT = 1.5
"""Of what is there, however little beside the rest."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One kind of thing that is counted a day."""

    label: str
    tone: str
    """Its colour: the end of a class in home.css."""
    days: Days
    link: Callable[[Span], str]
    """Returns the address of the list of what some days counted."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a bar: of one day and one series, in units of the box."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    title: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A series in words: what all days had of it."""

    label: str
    tone: str
    total: Amount
    url: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A day in words: an amount and an address for each series."""

    day: date
    cells: list[tuple[Amount, str]]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, ready for the page."""

    key: str
    title: str
    noun: str
    span: Span
    entries: list[Entry]
    pieces: list[Piece]
    rows: list[Row]
    """The days that had anything, the latest first."""
    top: Amount
    """The most that a day had."""
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def quiet_days(self) -> int:
        """How many days had nothing."""
        return len(self.span) - len(self.rows)


def chart(*, key: str, title: str, noun: str, span: Span, series: Sequence[Series]) -> Chart:
    """Return a chart of what each day of `span` had: bars of the series, one upon the other."""
    days = list(span)
    sums = {day: sum((each.days[day] for each in series), Amount()) for day in days}
    top = max(sums.values(), key=lambda amount: amount.number)
    return Chart(
        key=key,
        title=title,
        noun=noun,
        span=span,
        top=top,
        entries=[
            Entry(
                label=each.label,
                tone=each.tone,
                total=sum(each.days.values(), Amount()),
                url=each.link(span),
            )
            for each in series
        ],
        pieces=[
            piece
            for number, day in enumerate(days)
            for piece in _bar(day, number * WIDTH / len(days), WIDTH / len(days), top.number, series)
        ],
        rows=[
            Row(day=day, cells=[(each.days[day], each.link(Span.of(day))) for each in series])
            for day in reversed(days)
            if sums[day]
        ],
    )


def _bar(day: date, x: float, place: float, top: int, series: Sequence[Series]) -> list[Piece]:
    pieces = []
    y = float(HEIGHT)
    for each in series:
        amount = each.days[day]
        if not amount:
            continue
        height = min(y, max(MIN_HEIGHT, HEIGHT * amount.number / top))
        y -= height
        pieces.append(
            Piece(
                x=round(x + place * GAP / 2, 2),
                y=round(y, 2),
                width=round(place * (1 - GAP), 2),
                height=round(height, 2),
                tone=each.tone,
                title=f"{day:%-d %B}: {amount} {each.label.lower()}",
                url=each.link(Span.of(day)),
            )
        )
    return pieces
