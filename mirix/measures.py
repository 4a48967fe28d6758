"""What the database knows of the installation, for `/metrics`: the same, whichever process is asked.

Apps register their measures when they are ready. All are read in one go, each with `PATIENCE_MS` at most,
and kept for `KEPT_SECONDS`, so that reading the metrics often costs the database nothing. What cannot be read
is left out, and counted: the others are told all the same, also while the database is out of reach. No label
holds what a caller wrote.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from time import monotonic

from django.db import DatabaseError, InterfaceError, connection, transaction

from mirix.metrics import Counts, Family, Kind

UP = "mirix_database_up"
KEPT_SECONDS = 10.0
PATIENCE_MS = 2_000

Readings = Iterable[tuple[Mapping[str, str], float]]
logger = logging.getLogger(__name__)
failures = Counts("mirix_measure_failures_total", "Measures that the database did not give, by name.")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Numbers under one name; `read` returns each with its labels, and asks the database once."""

    name: str
    text: str
    read: Callable[[], Readings]
    kind: Kind = "gauge"


_measures: dict[str, Measure] = {}
_guard = threading.Lock()
_kept: tuple[float, dict[str, Family]] | None = None


def register(*measures: Measure) -> None:
    """Have these read whenever the metrics are."""
    _measures.update({measure.name: measure for measure in measures})


def measured() -> dict[str, Family]:
    """Return what could be read, by name, as of `KEPT_SECONDS` ago at most. Outside of request scope."""
    global _kept
    with _guard:
        if _kept is None or monotonic() - _kept[0] > KEPT_SECONDS:
            _kept = monotonic(), _read_all()
        return _kept[1]


def forget() -> None:
    """Have the next one who asks read anew."""
    global _kept
    _kept = None


def _read_all() -> dict[str, Family]:
    try:
        connection.ensure_connection()
    except (DatabaseError, InterfaceError):
        return {UP: _family(0.0)}
    found = {name: family for name, measure in _measures.items() if (family := _read(measure)) is not None}
    return found | {UP: _family(1.0 if found or not _measures else 0.0)}


def _read(measure: Measure) -> Family | None:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(PATIENCE_MS)])
            readings = [(tuple(labels.items()), number) for labels, number in measure.read()]
    except (DatabaseError, InterfaceError) as error:
        logger.warning("%s could not be measured (%s)", measure.name, type(error).__name__)
        failures.add(measure=measure.name)
        return None
    family = Family(text=measure.text, kind=measure.kind)
    family.reads.update({labels: partial(float, number) for labels, number in readings})
    return family


def _family(number: float) -> Family:
    text = "Whether the database answered when it was last asked for these numbers."
    return Family(text=text, kind="gauge", reads={(): partial(float, number)})
