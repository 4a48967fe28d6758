"""The heartbeat of a run: how its process proves, while a step is slow, that it lives.

Who works beats along the way by `tend`, over the connection that it has anyway. Where a step leaves no time
for that, a thread of its own steps in; it opens a connection for the beat and closes it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import DatabaseError, InterfaceError, connection

logger = logging.getLogger(__name__)

LATE = 1.5
"""After so many intervals without a beat the thread steps in."""


class Heartbeat:
    """Beats about every `interval` seconds; `beat` returns false when there is nothing left to beat for."""

    def __init__(self, beat: Callable[[], bool], *, interval: float, name: str) -> None:
        self._beat, self._interval, self._name = beat, interval, name
        self._beaten = time.monotonic()

    def tend(self) -> None:
        """Beat if it is time; outside of transactions."""
        if time.monotonic() - self._beaten >= self._interval:
            self._try()
            connection.close_if_unusable_or_obsolete()

    @contextmanager
    def watched(self) -> Iterator[Heartbeat]:
        """Have the thread step in while the block runs, wherever it is too busy to `tend`."""
        stop = threading.Event()
        thread = threading.Thread(target=self._step_in_until, args=(stop,), name=self._name, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join()

    def _step_in_until(self, stop: threading.Event) -> None:
        while not stop.wait(self._interval / 4):
            if time.monotonic() - self._beaten < LATE * self._interval:
                continue
            try:
                if not self._try():
                    return  # The next write of the run's own thread says so.
            finally:
                connection.close()

    def _try(self) -> bool:
        """Beat; a database that cannot be reached now does not mean that there is nothing to beat for."""
        self._beaten = time.monotonic()
        try:
            return self._beat()
        except (DatabaseError, InterfaceError) as error:
            logger.warning("The %s failed: %s", self._name, str(error).partition("\n")[0])
            return True
