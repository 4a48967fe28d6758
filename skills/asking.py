"""Asking a distiller about several sessions at once: outside transactions, and within what may be spent."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from django.conf import settings

from skills.distillation.types import Distiller
from skills.lessons import Answer, Reading, ask

GLANCE_SECONDS = 0.5
"""How long a run that has to wait does so before it looks whether it should stop."""


class Stopped(Exception):
    """The run was asked to stop between two sessions; whoever claims it next goes on."""


class Slots:
    """How many sessions a process distils at once, whatever the number of its runs."""

    def __init__(self) -> None:
        self._taken = 0
        self._freed = threading.Condition()

    def take(self, *, patience: float) -> bool:
        """Take one, after waiting for it if need be; false when none became free in time."""
        with self._freed:
            free = self._freed.wait_for(
                lambda: self._taken < settings.MIRIX_DISTILLER_MAX_CONCURRENCY, timeout=patience
            )
            self._taken += free
            return free

    def give_back(self, _done: object = None) -> None:
        """Let another one have it."""
        with self._freed:
            self._taken -= 1
            self._freed.notify()


slots = Slots()


class Asking:
    """The sessions of one run on their way to the distiller; never more at once than there are slots."""

    def __init__(
        self,
        distiller: Distiller,
        session_pks: Iterable[str],
        *,
        read: Callable[[str], Reading | None],
        should_stop: Callable[[], bool],
    ) -> None:
        self._distiller = distiller
        self._waiting = deque(session_pks)
        self._read = read
        self._should_stop = should_stop
        self._in_flight: dict[Future[Answer], Reading] = {}

    def no_more(self) -> None:
        """Ask about no further session; the answers on their way still come."""
        self._waiting.clear()

    def answers(self) -> Generator[tuple[Reading, Answer]]:
        """Yield each answer as it comes; raises `Stopped` once all that were on their way have come."""
        pool = ThreadPoolExecutor(settings.MIRIX_DISTILLER_MAX_CONCURRENCY, thread_name_prefix="distiller")
        stopping = False
        try:
            while self._waiting or self._in_flight:
                stopping = stopping or self._should_stop()
                while self._waiting and not stopping and self._ask_next(pool):
                    pass
                if stopping and not self._in_flight:
                    raise Stopped
                done, _ = wait(self._in_flight, timeout=GLANCE_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    yield self._in_flight.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask_next(self, pool: ThreadPoolExecutor) -> bool:
        """Ask about the next session; false when there is no slot for it now."""
        # Answers that nobody looked at yet count too: they may say that there is no use in asking.
        if len(self._in_flight) >= settings.MIRIX_DISTILLER_MAX_CONCURRENCY:
            return False
        if not slots.take(patience=0 if self._in_flight else GLANCE_SECONDS):
            return False
        reading = None
        try:
            # Read as late as this, so that it has every turn that came until then.
            reading = self._read(self._waiting.popleft())
        finally:
            if reading is None:
                slots.give_back()
        if reading is not None:
            future = pool.submit(ask, self._distiller, reading)
            future.add_done_callback(slots.give_back)
            self._in_flight[future] = reading
        return True
