"""Asking a distiller about several sessions at once: outside transactions, and within what may be spent."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from django.conf import settings

from skills.distillation.types import Distiller
from skills.lessons import Answer, Reading, ask

GLANCE_SECONDS = 0.5
"""How long a run that has to wait does so before it looks whether it should stop."""
PATIENCE_SECONDS = 0.05
"""How long a run with answers to store waits for a slot: the thread that has answered is about to free it."""


class Stopped(Exception):
    """The run was asked to stop between two sessions; whoever claims it next goes on."""


class Later(Exception):
    """A session must wait until answers that are on their way have come."""


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
        heard: Callable[[Reading, Answer], None] = lambda reading, answer: None,
        should_stop: Callable[[], bool],
        tend: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what to ask about.

        `read` gives what to ask of a session, None where there is nothing to ask, and may raise `Later`.
        `heard` is told of each answer before the next session is read. `tend` is called again and again while
        answers are waited for.
        """
        self._distiller = distiller
        self._waiting = deque(session_pks)
        self._read = read
        self._heard = heard
        self._should_stop = should_stop
        self._tend = tend
        self._in_flight: dict[Future[Answer], Reading] = {}
        self._come: deque[tuple[Reading, Answer]] = deque()

    @property
    def on_their_way(self) -> list[str]:
        """The sessions that were asked about and whose answer was not yielded yet."""
        readings = [*self._in_flight.values(), *(reading for reading, _ in self._come)]
        return [reading.session.pk for reading in readings]

    def no_more(self) -> None:
        """Ask about no further session; the answers on their way still come."""
        self._waiting.clear()

    def answers(self) -> Generator[tuple[Reading, Answer]]:
        """Yield each answer as it comes; raises `Stopped` once all that were on their way have come."""
        pool = ThreadPoolExecutor(settings.MIRIX_DISTILLER_MAX_CONCURRENCY, thread_name_prefix="distiller")
        stopping = False
        try:
            while self._waiting or self._in_flight:
                self._tend()
                stopping = stopping or self._should_stop()
                if stopping and not self._in_flight:
                    raise Stopped
                if not stopping:
                    self._ask_on(pool, patience=0 if self._in_flight else GLANCE_SECONDS)
                done, _ = wait(self._in_flight, timeout=GLANCE_SECONDS, return_when=FIRST_COMPLETED)
                self._come.extend((self._in_flight.pop(future), future.result()) for future in done)
                for reading, answer in self._come:
                    self._heard(reading, answer)
                is_useful = not any(answer.is_endpoints_fault for _, answer in self._come)
                while self._come:
                    yield self._come.popleft()
                    # The next is asked about before the answer after it is stored.
                    stopping = stopping or self._should_stop()
                    if self._come and is_useful and not stopping:
                        self._ask_on(pool, patience=PATIENCE_SECONDS)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask_on(self, pool: ThreadPoolExecutor, *, patience: float) -> None:
        """Ask about as many as may be asked at once; the first one waits for a slot."""
        while self._waiting and self._ask_next(pool, patience=patience):
            patience = 0

    def _ask_next(self, pool: ThreadPoolExecutor, *, patience: float) -> bool:
        """Ask about the next session; false when there is no slot for it now, or it must wait."""
        # Answers that are not stored yet count too: no crash shall cost more than this many of them.
        if len(self._in_flight) + len(self._come) >= settings.MIRIX_DISTILLER_MAX_CONCURRENCY:
            return False
        if not slots.take(patience=patience):
            return False
        reading = None
        try:
            # Read as late as this, so that it has every turn that came until then.
            reading = self._read(self._waiting[0])
            # Whoever found that nothing more is to be asked has emptied it.
            if self._waiting:
                self._waiting.popleft()
        except Later:
            if not self._in_flight and not self._come:  # it waits for those of other runs
                time.sleep(GLANCE_SECONDS)
            return False
        finally:
            if reading is None:
                slots.give_back()
        if reading is not None:
            future = pool.submit(copy_context().run, ask, self._distiller, reading)
            future.add_done_callback(slots.give_back)
            self._in_flight[future] = reading
        return True
