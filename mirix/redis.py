"""Redis where there is one, and the work going on where it does not answer.

Nothing rests on it for being right. After a failure it is left alone for `REST_SECONDS`, so that requests do
not wait for it one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar, cast

from django.conf import settings
from django.core.cache import cache
from redis.exceptions import RedisError

from mirix.metrics import publish

REST_SECONDS = 5.0

T = TypeVar("T")
logger = logging.getLogger(__name__)


def forget_everything() -> bool:
    """Drop all that this installation keeps in Redis, as after the database went back in time.

    Return whether nothing of it is left, which is so where there is no Redis.
    """
    if not Redis.is_configured():
        return True
    try:
        client = cast("Any", cache).client.get_client(write=True)
        for name in client.scan_iter(match=f"{Redis.key('*')}", count=1_000):
            client.unlink(name)
    except RedisError as error:
        logger.warning("Redis could not be emptied (%s)", type(error).__name__)
        return False
    return True


class Redis:
    """What one part of the house asks of Redis."""

    def __init__(self, without: str) -> None:
        """`without` says for the log what is done while Redis is out of reach."""
        self.failures = 0
        """How often Redis did not answer, since the process began."""
        self._without = without
        self._rests_until = 0.0

    def publish_failures(self, part: str) -> None:
        """Show the failures among the metrics, under the name of the part of the house that asks."""
        publish(
            "mirix_redis_failures_total",
            "How often Redis did not answer, by what asked it.",
            lambda: self.failures,
            labels={"part": part},
        )

    @staticmethod
    def is_configured() -> bool:
        """Return whether there is a Redis at all."""
        return hasattr(cache, "client")  # django-redis has one

    @staticmethod
    def key(name: str) -> str:
        """Return the whole name of a key."""
        return f"{settings.CACHES['default'].get('KEY_PREFIX', '')}:{name}"

    def ask(self, act: Callable[[Any], T], otherwise: Callable[[], T]) -> T:
        """Return what `act` makes of a client of Redis; of `otherwise` where there is none that answers."""
        if self.is_configured() and monotonic() >= self._rests_until:
            try:
                client = cast("Any", cache).client.get_client(write=True)
                return act(client)
            except RedisError as error:
                self.failures += 1
                self._rests_until = monotonic() + REST_SECONDS
                logger.warning(
                    "Redis is out of reach (%s, failure %d of this process): %s for %d s",
                    error,
                    self.failures,
                    self._without,
                    REST_SECONDS,
                )
        return otherwise()
