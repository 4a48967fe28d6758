"""Whether this process can serve: what it needs, and what it would rather not do without, each by name.

Who asks is nobody in particular, so that nothing is told that says more than which part is at fault. A look
is kept for `KEPT_SECONDS`, whoever asks meanwhile: asking often costs the database nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, InterfaceError, connection, transaction
from redis.exceptions import RedisError

from mirix.checks import unapplied_migrations
from mirix.jobs import workers_alive
from mirix.redis import Redis

KEPT_SECONDS = 1.0
PATIENCE_MS = 2_000
"""For each statement; a database that is slower serves nobody."""
NEEDED = ("database", "migrations")
"""Without these no request can be served. Workers are not among them: what is accepted waits for the next."""

State = Literal["ok", "failed", "unknown"]
logger = logging.getLogger(__name__)
_guard = threading.Lock()
_kept: tuple[float, Readiness] | None = None


@dataclass(frozen=True)
class Part:
    """One thing that was looked at."""

    state: State
    detail: str

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.state == "ok"


@dataclass(frozen=True)
class Readiness:
    """What was found; `parts` by name, in the order in which one builds on the other."""

    parts: Mapping[str, Part]

    @property
    def is_ready(self) -> bool:
        """Whether requests can be served."""
        return all(self.parts[name].is_ok for name in NEEDED)

    @property
    def status(self) -> Literal["ready", "degraded", "unavailable"]:
        """`degraded` where requests are served, and something else is wrong."""
        if not self.is_ready:
            return "unavailable"
        return "ready" if all(part.is_ok for part in self.parts.values()) else "degraded"


def look() -> Readiness:
    """Return how things are, as of a second ago at most."""
    global _kept
    with _guard:
        if _kept is None or monotonic() - _kept[0] > KEPT_SECONDS:
            found = Readiness(_database() | _around())
            _kept = monotonic(), found
        return _kept[1]


def forget() -> None:
    """Have the next one who asks look anew."""
    global _kept
    _kept = None


def _database() -> dict[str, Part]:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(PATIENCE_MS)])
            missing = unapplied_migrations()
            migrations = _migrations(len(missing))
            queue = Part("unknown", "the database is behind the code") if missing else _workers()
    except (DatabaseError, InterfaceError) as error:
        logger.warning("Not ready, the database does not answer: %s", str(error).partition("\n")[0])
        unknown = Part("unknown", "the database is out of reach")
        return {"database": Part("failed", "out of reach"), "migrations": unknown, "worker": unknown}
    return {"database": Part("ok", "answers"), "migrations": migrations, "worker": queue}


def _migrations(missing: int) -> Part:
    if missing:
        return Part("failed", f"{missing} not applied; run ./run migrate")
    return Part("ok", "all applied")


def _workers() -> Part:
    alive = workers_alive()
    if not alive:
        return Part("failed", "none is alive; jobs wait")
    return Part("ok", f"{alive} alive")


def _around() -> dict[str, Part]:
    return {"cache": _cache(), "distiller": _distiller(), "embeddings": _embeddings()}


def _cache() -> Part:
    if not Redis.is_configured():
        return Part("ok", "memory of each process")
    try:
        cache.client.get_client(write=True).ping()  # type: ignore[attr-defined]
    except RedisError as error:
        logger.warning("Redis does not answer: %s", type(error).__name__)
        return Part("failed", "Redis is out of reach; all goes on without")
    return Part("ok", "Redis answers")


def _distiller() -> Part:
    if settings.MIRIX_DISTILLER != "offline" and settings.MIRIX_LLM_MODEL:
        return Part("ok", "a model is configured")
    if settings.MIRIX_DISTILLER == "llm":
        return Part("failed", "no model is configured")
    return Part("ok", "by rules")


def _embeddings() -> Part:
    return Part("ok", "a model is configured" if settings.MIRIX_EMBEDDING_MODEL else "none; words alone")
