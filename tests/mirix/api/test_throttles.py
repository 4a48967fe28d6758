"""Limits by caller and kind of route: exact, 429 with Retry-After, and nobody pays for another."""

from __future__ import annotations

from collections import Counter as Tally
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from mirix.api import throttles
from mirix.caches import caches
from mirix.counting import Counter
from tests.conftest import bearer
from tests.factories import make_client, make_key, make_member, make_owner, make_token
from tests.redis import redis

pytestmark = pytest.mark.django_db
CALLS = 50


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(throttles, "counter", Counter())


def statuses(client: Client, path: str, times: int, **kwargs: object) -> list[int]:
    return [client.get(path, **kwargs).status_code for _ in range(times)]


def test_what_is_over_the_limit_is_429_with_the_time_to_wait(api, settings):
    settings.MIRIX_THROTTLE_READ = 2

    assert statuses(api, "/v1/skills", 2) == [200, 200]
    answer = api.get("/v1/skills")

    assert answer.status_code == 429
    assert answer["Content-Type"] == "application/json"
    wait = int(answer["Retry-After"])
    assert 55 <= wait <= 60
    assert answer.json() == {"detail": f"Request was throttled. Expected available in {wait} seconds."}


def test_a_refused_request_does_nothing(api, settings, owner):
    settings.MIRIX_THROTTLE_WRITE = 1
    assert api.post("/users/create_or_get", {"user_id": "bob"}, format="json").status_code == 201
    assert api.post("/users/create_or_get", {"user_id": "carol"}, format="json").status_code == 429
    assert not owner.organization.end_users.filter(user_id="carol").exists()


def test_who_may_not_do_something_is_counted_like_everybody_else(read_api, settings):
    settings.MIRIX_THROTTLE_READ, settings.MIRIX_THROTTLE_WRITE, settings.MIRIX_THROTTLE_AUTH = 1, 2, 1
    body = {"messages": [{"role": "user", "content": "x"}]}

    answers = [read_api.post("/memory/add_sync", body, format="json") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [403, 403, 429, 429]
    assert read_api.get("/v1/skills").status_code == 200, "another kind of route has its own count"


def test_zero_is_no_limit(api, settings):
    settings.MIRIX_THROTTLE_READ = 0
    assert set(statuses(api, "/v1/skills", 20)) == {200}


@pytest.mark.parametrize(
    ("kind", "method", "path"),
    [
        ("READ", "get", "/v1/skills"),
        ("WRITE", "post", "/users/create_or_get"),
        ("SEARCH", "get", "/memory/search?query=x"),
        ("SEARCH", "get", "/memory/search_all_users?query=x"),
        ("DREAM", "post", "/memory/auto_dream?user_id=nobody"),
    ],
)
def test_each_kind_of_route_counts_for_itself(api, settings, kind, method, path):
    for name in ("READ", "WRITE", "SEARCH", "DREAM", "AUTH"):
        setattr(settings, f"MIRIX_THROTTLE_{name}", 1 if name == kind else 0)

    first = getattr(api, method)(path, format="json" if method == "post" else None)
    second = getattr(api, method)(path, format="json" if method == "post" else None)

    assert first.status_code != 429
    assert second.status_code == 429


def test_each_key_and_each_member_counts_alone(owner, settings):
    settings.MIRIX_THROTTLE_READ = 1
    client = make_client(owner.organization)
    callers = [
        APIClient(headers={"X-API-Key": make_key(client)}),
        APIClient(headers={"X-API-Key": make_key(client)}),
        bearer(make_token(make_member(owner.organization), owner.organization)),
    ]

    assert [caller.get("/v1/skills").status_code for caller in callers] == [200, 200, 200]
    assert [caller.get("/v1/skills").status_code for caller in callers] == [429, 429, 429]


def test_logins_count_by_address(client, settings):
    settings.MIRIX_THROTTLE_AUTH = 1
    wrong = {"username": "x", "password": "y"}

    def login(address: str) -> int:
        return client.post("/auth/token", wrong, "application/json", REMOTE_ADDR=address).status_code

    assert [login("192.0.2.1"), login("192.0.2.1"), login("192.0.2.2")] == [401, 429, 401]
    assert [login("2001:db8::1"), login("2001:db8::2"), login("2001:db8:0:1::1")] == [401, 429, 401]


def test_who_guesses_keys_is_throttled_and_others_behind_the_address_are_not(api, client, settings):
    settings.MIRIX_THROTTLE_AUTH = 2
    guess = {"headers": {"X-API-Key": "mx_guess"}}

    assert statuses(client, "/v1/skills", 4, **guess) == [401, 401, 429, 429]
    assert int(client.get("/v1/skills", **guess)["Retry-After"]) > 0
    assert api.get("/v1/skills").status_code == 200
    login = client.post("/auth/token", {"username": "x", "password": "y"}, "application/json")
    assert login.status_code == 401


def test_health_has_no_limit(client, settings):
    settings.MIRIX_THROTTLE_READ = 1
    assert statuses(client, "/health", 5) == [200] * 5


@pytest.mark.parametrize("with_redis", [False, True], ids=["memory", "Redis"])
@pytest.mark.django_db(transaction=True)
def test_of_fifty_at_once_exactly_the_limit_passes(settings, with_redis):
    limit = 20
    settings.MIRIX_THROTTLE_READ = limit
    owner = make_owner()
    key = make_key(make_client(owner.organization))

    with redis() as url:
        settings.CACHES = caches(url if with_redis else "")
        if with_redis:
            cache.client.get_client(write=True).flushdb()
        answers = call_at_once(key)

    tally = Tally(answer.status_code for answer in answers)
    assert tally == {200: limit, 429: CALLS - limit}
    assert all(int(answer["Retry-After"]) > 0 for answer in answers if answer.status_code == 429)
    assert throttles.counter.redis.failures == 0


def call_at_once(key: str) -> list:
    start = Barrier(CALLS)

    def call(_: int):
        client = Client(headers={"X-API-Key": key})
        start.wait()
        try:
            return client.get("/v1/skills")
        finally:
            connection.close()

    with ThreadPoolExecutor(CALLS) as pool:
        return list(pool.map(call, range(CALLS)))
