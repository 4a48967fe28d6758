"""GET /metrics: who may read it, and what it says."""

from __future__ import annotations

import re

import pytest
from django.core.cache import cache as django_cache
from django.db import DatabaseError

from mirix.caches import caches
from mirix.counting import counter
from skills.models import SearchEvent
from skills.search import service
from skills.search.cache import cache
from tests.redis import redis, redis_server

pytestmark = pytest.mark.django_db
TOKEN = "a-token-of-the-monitoring"


@pytest.fixture
def token(settings) -> dict[str, str]:
    settings.MIRIX_METRICS_TOKEN = TOKEN
    return {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def numbers(client, token):
    """Read the metrics: by name with labels, the number."""

    def read() -> dict[str, float]:
        answer = client.get("/metrics", headers=token)
        assert answer.status_code == 200
        found = re.findall(r"^(?!#)(\S+) (\S+)$", answer.content.decode(), re.MULTILINE)
        return {name: float(number) for name, number in found}

    return read


def test_without_the_setting_there_is_no_such_page(client, api, settings):
    settings.MIRIX_METRICS_TOKEN = ""
    for answer in (
        client.get("/metrics"),
        client.get("/metrics", headers={"Authorization": "Bearer "}),
        api.get("/metrics"),
    ):
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not found."})


def test_it_is_text_of_the_format_whatever_is_accepted(client, token):
    for accepted in ("*/*", "text/plain", "application/openmetrics-text;version=1.0.0", "application/json"):
        answer = client.get("/metrics", headers=token | {"Accept": accepted})
        assert answer.status_code == 200
        assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "# TYPE mirix_http_requests_total counter\n" in answer.content.decode()


def test_it_needs_no_database(client, token, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/metrics", headers=token).status_code == 200


@pytest.mark.parametrize(
    "said",
    ["", TOKEN, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xe9"],
)
def test_any_other_credential_is_refused(client, token, said):
    answer = client.get("/metrics", headers={"Authorization": said})
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/json"
    assert answer["WWW-Authenticate"] == 'Bearer realm="mirix"'


def test_no_key_and_no_members_token_reads_the_numbers_of_the_installation(api, member_api, token):
    assert api.get("/metrics").status_code == 401
    assert member_api("administrator").get("/metrics").status_code == 401


def test_guessing_is_slowed_down(client, token, settings):
    settings.MIRIX_THROTTLE_AUTH = 2
    wrong = {"Authorization": "Bearer wrong"}
    assert [client.get("/metrics", headers=wrong).status_code for _ in range(3)] == [401, 401, 429]
    assert client.get("/metrics", headers=token).status_code == 200


def test_requests_are_counted_by_method_and_status(client, numbers):
    name = 'mirix_http_requests_total{method="%s",status="%d"}'
    before = numbers()
    client.get("/health")
    client.get("/nowhere")
    client.delete("/health")
    client.generic("BREW", "/health")
    after = numbers()
    grown = {key: after[key] - before.get(key, 0) for key in after if after[key] != before.get(key, 0)}
    grown.pop("process_start_time_seconds", None)
    assert grown == {
        name % ("GET", 200): 2,  # one of them read the metrics
        name % ("GET", 404): 1,
        name % ("DELETE", 405): 1,
        name % ("other", 405): 1,
    }


def test_what_search_found_in_redis_is_told(read_api, owner, numbers, settings, redis_asked):
    asked = {"query": "order", "user_id": "alice", "search_method": "bm25"}
    with redis() as url:
        settings.CACHES = caches(url)
        client = django_cache.client.get_client(write=True)
        client.flushdb()
        before = numbers()
        for _ in range(3):
            read_api.get("/memory/search", asked)
        for name in client.keys("mirix:search:*:found:*"):
            client.set(name, "garbage")
        read_api.get("/memory/search", asked)
        after = numbers()
    name = 'mirix_search_cache_lookups_total{result="%s"}'
    grown = {word: after[name % word] - before[name % word] for word in ("hit", "miss", "garbage")}
    assert grown == {"hit": 2, "miss": 1, "garbage": 1}


def test_a_redis_that_fails_is_told_by_who_asked_it(read_api, owner, numbers, settings, redis_asked):
    with redis_server() as url:
        settings.CACHES = caches(url)
    before = numbers()
    read_api.get("/memory/search", {"query": "order", "user_id": "alice"})
    counter.hit("a-key", 60)
    after = numbers()
    for part in ("search", "limits"):
        name = f'mirix_redis_failures_total{{part="{part}"}}'
        assert after[name] - before[name] == 1, part


@pytest.fixture
def redis_asked(monkeypatch):
    """Those who ask Redis in this process ask at once, and are left as they were."""
    assert service.cache is cache
    for asking in (cache.redis, counter.redis):
        monkeypatch.setattr(asking, "_rests_until", 0.0)


def test_a_search_that_could_not_be_logged_is_told(read_api, owner, numbers, monkeypatch):
    def fail(**fields):
        raise DatabaseError

    before = numbers()["mirix_search_log_failures_total"]
    monkeypatch.setattr(SearchEvent.objects, "create", fail)
    read_api.get("/memory/search", {"query": "order", "user_id": "alice"})
    assert numbers()["mirix_search_log_failures_total"] - before == 1
