"""Counting is exact: of many at once, as many are within a limit as the limit says."""

from __future__ import annotations

from collections import Counter as Tally
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.cache import cache

from mirix import counting
from mirix import redis as redis_access
from mirix.caches import caches
from mirix.counting import Counter, LocalCounter
from tests.redis import redis, redis_server

THREADS = 50


@pytest.fixture(scope="module")
def redis_url():
    with redis() as url:
        yield url


@pytest.fixture
def with_redis(settings, redis_url):
    settings.CACHES = caches(redis_url)
    cache.client.get_client(write=True).flushdb()


@pytest.fixture(params=["memory", "Redis"])
def counter(request) -> Counter:
    if request.param == "Redis":
        request.getfixturevalue("with_redis")
    return Counter()


def test_each_hit_counts_once_however_many_come_at_once(counter):
    start = Barrier(THREADS)

    def hit(_: int) -> int:
        start.wait()
        return counter.hit("many", 60)[0]

    with ThreadPoolExecutor(THREADS) as pool:
        counts = list(pool.map(hit, range(THREADS)))

    assert sorted(counts) == list(range(1, THREADS + 1))
    assert counter.redis.failures == 0


def test_a_window_begins_with_its_first_hit_and_ends(counter):
    first, left = counter.hit("window", 0.2)
    assert first == 1
    assert 0 < left < 0.201
    again, less = counter.hit("window", 0.2)
    assert again == 2
    assert less <= left
    assert counter.hit("other", 0.2)[0] == 1
    while counter.hit("window", 0.2)[0] != 1:
        assert less > 0


def test_all_processes_count_together_in_redis(with_redis):
    assert [Counter().hit("shared", 60)[0] for _ in range(3)] == [1, 2, 3]
    (name,) = cache.client.get_client().keys("*shared")
    assert name == b"mirix:shared"
    assert 59_000 < cache.client.get_client().pttl(name) <= 60_000


def test_a_window_in_redis_has_an_end_whoever_dies(with_redis):
    """The count and its end are set in one step: no key can stay for ever."""
    Counter().hit("end", 60)
    assert cache.client.get_client().ttl("mirix:end") > 0


def test_without_redis_it_counts_here_and_says_so_and_asks_again_later(settings, caplog, monkeypatch):
    clock = [1_000.0]
    monkeypatch.setattr(counting, "monotonic", lambda: clock[0])
    monkeypatch.setattr(redis_access, "monotonic", lambda: clock[0])
    with redis_server() as url:
        settings.CACHES = caches(url)
        counter = Counter()
        assert counter.hit("key", 60)[0] == 1
    assert [counter.hit("key", 60)[0] for _ in range(3)] == [1, 2, 3]
    assert counter.redis.failures == 1, "asked once, then left in peace"
    assert caplog.text.count("Redis is out of reach") == 1
    clock[0] += redis_access.REST_SECONDS
    assert counter.hit("key", 60)[0] == 4
    assert counter.redis.failures == 2


def test_memory_does_not_grow_without_end(monkeypatch):
    clock = [1_000.0]
    monkeypatch.setattr(counting, "monotonic", lambda: clock[0])
    monkeypatch.setattr(counting, "MAX_LOCAL_KEYS", 10)
    counter = LocalCounter()
    for number in range(100):
        clock[0] += 0.001
        counter.hit(f"flood {number}", 60)
        assert len(counter._counts) <= 10
    assert counter.hit("flood 99", 60)[0] == 2, "the latest are kept"
    clock[0] += 61
    counter.hit("flood 99", 60)
    assert Tally(counter._counts)["flood 98"] <= 1
