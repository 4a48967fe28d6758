"""Counting within a window of time, exactly, however many count at once.

With Redis the count is one for all processes; without, each process counts for itself. While Redis is out of
reach each process counts for itself as well: limits then hold per process.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

from mirix.redis import Redis

MAX_LOCAL_KEYS = 50_000
# The window begins with its first hit, and by the clock of Redis.
HIT = """
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {count, redis.call('PTTL', KEYS[1])}
"""


class LocalCounter:
    """Counts of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, tuple[int, float]] = {}

    def hit(self, key: str, seconds: float) -> tuple[int, float]:
        """Count one more for `key`; return the count in its window, and the seconds until that ends."""
        now = monotonic()
        with self._lock:
            count, end = self._counts.get(key, (0, 0.0))
            if end <= now:
                self._make_room(now)
                count, end = 0, now + seconds
            self._counts[key] = count + 1, end
            return count + 1, end - now

    def _make_room(self, now: float) -> None:
        """Forget windows that are over; under a flood of keys also those that end first."""
        if len(self._counts) < MAX_LOCAL_KEYS:
            return
        open_windows = sorted((end, key) for key, (_, end) in self._counts.items() if end > now)
        kept = {key for _, key in open_windows[-MAX_LOCAL_KEYS // 2 :]}
        self._counts = {key: value for key, value in self._counts.items() if key in kept}


class Counter:
    """Counts of all processes where there is a Redis, else of this one."""

    def __init__(self) -> None:
        self.redis = Redis(without="counting here")
        self._local = LocalCounter()

    def hit(self, key: str, seconds: float) -> tuple[int, float]:
        """Count one more for `key`; return the count in its window, and the seconds until that ends."""
        return self.redis.ask(
            lambda client: self._hit_redis(client, key, seconds), lambda: self._local.hit(key, seconds)
        )

    def _hit_redis(self, client: Any, key: str, seconds: float) -> tuple[int, float]:
        script = client.register_script(HIT)
        count, milliseconds = script(keys=[self.redis.key(key)], args=[int(seconds * 1000)])
        return int(count), max(0, int(milliseconds)) / 1000


counter = Counter()
counter.redis.publish_failures("limits")
