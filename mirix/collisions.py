"""Work that came across another transaction, an erasure above all, and is done again from its beginning.

An erasure takes the locks of writers in their order, but while it holds some of them new rows come, with
locks of their own; and what a writer points at may be gone when it commits. The database ends one of the two.
So both begin again: erasures, and all that the worker does. Who comes across others again and again gives up
(`StillColliding`). Callers of the API are told by 503 or 409, people in the admin by a page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, OperationalError

TRIES = 5
FOREIGN_KEY_VIOLATION = "23503"
COLLISIONS = {
    "40P01",  # deadlock_detected
    "40001",  # serialization_failure
    FOREIGN_KEY_VIOLATION,
}
T = TypeVar("T")


class StillColliding(OperationalError):
    """Each of `TRIES` tries came across another transaction; nothing was stored, later it may be."""


logger = logging.getLogger(__name__)


def through_collisions(step: Callable[[], T]) -> T:
    """Return what `step` returns; where another transaction came across, it is done again.

    A step is one transaction, and reads anew what it is about. Raises `StillColliding` when the last
    of `TRIES` came across another one too, and every other error at once.
    """
    for left in reversed(range(TRIES)):
        try:
            return step()
        except (IntegrityError, OperationalError) as error:
            if not is_collision(error):
                raise
            # By its kind and the table alone: its words may quote what is to go.
            kind = _kind(error)
            if not left:
                # With its cause, by which others tell it from a lost connection.
                raise StillColliding(f"{TRIES} tries came across others ({kind}).") from error.__cause__
            logger.warning("a step came across another one (%s) and is done again", kind)
    raise AssertionError("unreachable")


def _kind(error: BaseException) -> str:
    """Return what it is, and of which table: one that comes each time is no collision, but a fault there."""
    table = getattr(getattr(error.__cause__, "diag", None), "table_name", None)
    return " ".join([type(error).__name__, *([f"of {table}"] if table else [])])


def is_collision(error: BaseException) -> bool:
    """Return whether an error of Django's means that another transaction came across."""
    return getattr(error.__cause__, "sqlstate", None) in COLLISIONS


def points_at_nothing(error: BaseException) -> bool:
    """Return whether an error of Django's means that what was written about is gone: it was erased."""
    return (
        not isinstance(error, StillColliding)
        and getattr(error.__cause__, "sqlstate", None) == FOREIGN_KEY_VIOLATION
    )
