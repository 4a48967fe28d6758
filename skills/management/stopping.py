"""How a long command is stopped: the first signal lets it finish what is on its way, the second does not."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """As a context it hears the signals that end a process; `is_asked` says whether one came.

    What happens at a second one is what would have happened at the first one without this.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        """Take what tells the person who watches, once; it is called by `is_asked`, not by the signal."""
        self.number = 0
        """The signal that came; 0 while none did."""
        self._tell: Callable[[], None] | None = tell
        self._before: dict[signal.Signals, Any] = {}

    def is_asked(self) -> bool:
        """Return whether to stop."""
        if self.number and self._tell:
            self._tell()
            self._tell = None
        return bool(self.number)

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():  # nobody else may
            for number in NUMBERS:
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP, and means it
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.__exit__(None, None, None)
