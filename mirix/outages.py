"""Work that outlives a restart of the database: a step is done again once the database is back.

Only for steps that may be done twice, outside of transactions, where somebody can wait: not in a web request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from time import monotonic, sleep
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection
from procrastinate.exceptions import ConnectorException
from procrastinate.psycopg_connector import PsycopgConnector

from mirix.text import shorten

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
LISTEN_AGAIN_SECONDS = 1.0
MAX_REASON_CHARS = 200
CONNECTION_EXCEPTIONS = "08"
OUTAGES = {
    "57P01",  # admin_shutdown
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now: it starts or stops
    "53300",  # too_many_connections
}
T = TypeVar("T")


def through_outage(step: Callable[[], T], *, patience: float) -> T:
    """Return what `step` returns; where the connection is lost on the way, it is done again.

    The database may be out of reach for `patience` seconds; then the error is raised, as is every other one.
    """
    deadline = 0.0
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return step()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block or not is_outage(error):
                raise
            now = monotonic()
            deadline = deadline or now + patience
            if now >= deadline:
                raise
            logger.warning("The database is out of reach: %s", shorten(str(error), MAX_REASON_CHARS))
            connection.close()
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def is_outage(error: Exception) -> bool:
    """Return whether an error of Django's means that the connection was lost, or could not be made."""
    # The server names the reason of everything else; a connection that breaks off has none.
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state in OUTAGES or state.startswith(CONNECTION_EXCEPTIONS)


class ListeningConnector(PsycopgConnector):
    """A worker's connections, the one of which that hears of new jobs outlives a restart of the database.

    The others come from a pool, which replaces them itself.
    """

    async def listen_notify(self, on_notification: Any, channels: Iterable[str]) -> None:
        """Hear of new jobs for as long as the worker lives; what was missed, it finds by looking."""
        while True:
            try:
                await super().listen_notify(on_notification, channels)
            except ConnectorException as error:
                reason = shorten(str(error.__cause__), MAX_REASON_CHARS)
                logger.warning("The worker hears of no new jobs: %s", reason)
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)
