"""What search keeps in Redis, where there is one: vectors of queries, and what the lanes found for an owner.

Redis may be down, slow, flushed or full of garbage: the answers are the same. A value counts where we have
sealed it for its key only. What the lanes found is kept under the number of the owner's changes
(`skills.search.changes`), so that no answer is older than what was published, and its skills are read from
the database in any case. Keys hold digests, never words; they begin with the fingerprint of what the answers
rest on, and those of an earlier release go when it is first seen.
"""

from __future__ import annotations

import inspect
import json
import logging
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache as once
from hashlib import blake2b
from hmac import compare_digest
from importlib.metadata import version
from typing import Any, TypeVar

from django.conf import settings
from redis.exceptions import ResponseError

from mirix.llm.embeddings import EmbeddingEndpoint
from mirix.metrics import publish
from mirix.redis import Redis
from mirix.tenants.owners import Owner
from skills.models import SkillDocument, SkillEmbedding, SkillPosting
from skills.search import analysis, lexical, semantic
from skills.search.changes import changes_of
from skills.search.timing import lanes

VECTOR_SECONDS = 24 * 3600
FOUND_SECONDS = 3600
PREFIX = "search"
RELEASE = f"{PREFIX}-release"
FORMAT = 2
"""To be raised when what is kept changes its meaning."""
SCAN_BATCH = 500
SEAL_BYTES = 16

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the lanes found: by lane the skills with the lane's scores, best first."""

    lanes: dict[str, list[tuple[str, float]]]
    total: int
    degraded: str | None = None
    is_lasting: bool = True
    """False where it would be another answer once an endpoint is well again."""


def fingerprint() -> str:
    """Return the digest of what answers rest on beside the rows themselves.

    That is the format, the tables, and how skills are found: analysis and lanes as they are written, since
    of every change of theirs somebody would have to think otherwise.
    """
    columns = [
        f"{model._meta.db_table}.{field.column}"
        for model in (SkillDocument, SkillEmbedding, SkillPosting)
        for field in model._meta.concrete_fields
    ]
    return _digest(FORMAT, columns, *_finding())


@once
def _finding() -> tuple[str, ...]:
    """Return the digest of the modules that find skills, and the release of the stemmer."""
    sources = "".join(inspect.getsource(module) for module in (analysis, lexical, semantic))
    return blake2b(sources.encode(), digest_size=16).hexdigest(), version("snowballstemmer")


class SearchCache:
    """The part of Redis that belongs to search. Every method answers, whatever Redis does."""

    def __init__(self) -> None:
        self.redis = Redis(without="searching without it")
        self.hits = self.misses = 0
        self.garbage = 0
        """How many values were none of ours, and were made anew."""
        self._known_release = ""
        self._lock = threading.Lock()

    def vector(self, endpoint: EmbeddingEndpoint, query: str) -> list[float]:
        """Return the vector of a query, from the endpoint where it is not kept; raises as it does.

        Rounded to single precision either way, so that one that was kept ranks like a new one.
        """
        made = self._kept(
            _vector_key(endpoint, query),
            _read_vector,
            lambda: _asked(endpoint, query),
            _write_vector,
            VECTOR_SECONDS,
        )
        return _read_vector(_write_vector(made))

    def forget_vector(self, endpoint: EmbeddingEndpoint, query: str) -> None:
        """Drop the vector of a query that fits no skill's: the endpoint may answer otherwise next time."""
        name = self._name(_vector_key(endpoint, query))
        self.redis.ask(lambda client: client.delete(name), lambda: None)

    def found(self, owner: Owner, asked: Mapping[str, Any], find: Callable[[], Found]) -> Found:
        """Return what `find` finds for an owner; `asked` is all that it depends on beside the rows."""
        if not self.redis.is_configured():
            return find()
        return self._kept(
            f"found:{_digest(owner.end_user.pk, changes_of(owner), dict(asked))}",
            _read_found,
            find,
            lambda found: _write_found(found) if found.is_lasting else None,
            FOUND_SECONDS,
        )

    def forget(self) -> bool:
        """Drop all that search keeps in Redis; false where Redis is out of reach and may still hold it.

        Keys do not tell whose words are behind them, so those of everybody go: they are made anew.
        """
        if not self.redis.is_configured():
            return True
        return self.redis.ask(self._drop_all, lambda: False)

    def _drop_all(self, client: Any) -> bool:
        for name in client.scan_iter(match=self.redis.key(f"{PREFIX}:*"), count=SCAN_BATCH):
            client.delete(name)
        return True

    def _kept(
        self,
        key: str,
        read: Callable[[bytes], T],
        make: Callable[[], T],
        write: Callable[[T], bytes | None],
        seconds: int,
    ) -> T:
        name = self._name(key)
        value = self.redis.ask(lambda client: self._get(client, name), lambda: None)
        if value is not None:
            seal, body = value[:SEAL_BYTES], value[SEAL_BYTES:]
            if compare_digest(seal, _seal(name, body)):
                self._count("hits")
                return read(body)
            self._count("garbage")
            logger.warning("search found garbage in Redis, and makes it anew")
        elif self.redis.is_configured():
            self._count("misses")
        made = make()
        written = write(made)
        if written is not None:
            sealed = _seal(name, written) + written
            self.redis.ask(lambda client: client.set(name, sealed, ex=seconds), lambda: None)
        return made

    def _name(self, key: str) -> str:
        return self.redis.key(f"{PREFIX}:{fingerprint()}:{key}")

    def _count(self, what: str) -> None:
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)

    def _get(self, client: Any, name: str) -> bytes | None:
        self._drop_earlier_release(client)
        return _value(client, name)

    def _drop_earlier_release(self, client: Any) -> None:
        """Once in a process: drop the keys of another release's search, and of nothing else."""
        ours = fingerprint()
        if self._known_release == ours:
            return
        release = self.redis.key(RELEASE)
        kept = _value(client, release)
        if kept != ours.encode():
            dropped = self._drop_others(client, ours)
            client.set(release, ours)
            if kept is not None:
                logger.warning(
                    "search in Redis was of another release (%s, now %s): %d of its keys dropped",
                    kept.decode(errors="replace")[:40],
                    ours,
                    dropped,
                )
        self._known_release = ours

    def _drop_others(self, client: Any, ours: str) -> int:
        own = self.redis.key(f"{PREFIX}:{ours}:").encode()
        dropped = 0
        for name in client.scan_iter(match=self.redis.key(f"{PREFIX}:*"), count=SCAN_BATCH):
            if not name.startswith(own):
                dropped += client.delete(name)
        return dropped


def _value(client: Any, name: str) -> bytes | None:
    try:
        value: bytes | None = client.get(name)
    except ResponseError:  # of another type than ours
        return b""
    return value


def _digest(*parts: Any) -> str:
    # Keyed: who can read Redis must not find out by trying which words were asked for.
    return _keyed(json.dumps(parts, sort_keys=True, default=str).encode()).hex()


def _seal(name: str, body: bytes) -> bytes:
    """Return what only we can put before a value kept under this name: what bears it needs no other check."""
    return _keyed(f"{name}\n".encode() + body)


def _keyed(data: bytes) -> bytes:
    key = blake2b(settings.SECRET_KEY.encode(), digest_size=32).digest()
    return blake2b(data, digest_size=SEAL_BYTES, key=key).digest()


@lanes.of(lane="vector")
def _asked(endpoint: EmbeddingEndpoint, query: str) -> list[float]:
    return endpoint.embed_query(query)


def _vector_key(endpoint: EmbeddingEndpoint, query: str) -> str:
    return f"vector:{endpoint.query_key}:{_digest(query)}"


def _write_vector(vector: list[float]) -> bytes:
    return struct.pack(f"<{len(vector)}f", *vector)


def _read_vector(value: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(value) // 4}f", value))


def _write_found(found: Found) -> bytes:
    return json.dumps([found.lanes, found.total, found.degraded]).encode()


def _read_found(value: bytes) -> Found:
    lanes, total, degraded = json.loads(value)
    return Found(
        lanes={lane: [(skill_id, score) for skill_id, score in ranked] for lane, ranked in lanes.items()},
        total=total,
        degraded=degraded,
    )


cache = SearchCache()
cache.redis.publish_failures("search")
for _result, _read in {
    "hit": lambda: cache.hits,
    "miss": lambda: cache.misses,
    "garbage": lambda: cache.garbage,
}.items():
    publish(
        "mirix_search_cache_lookups_total",
        "What search looked for in Redis: there, not there, or none of ours and made anew.",
        _read,
        labels={"result": _result},
    )
