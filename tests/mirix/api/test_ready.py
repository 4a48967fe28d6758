"""GET /ready: what is looked at, what makes it a 503, and that it tells no more than that."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from mirix import checks, readiness
from mirix.caches import caches
from tests.mirix.states import LAST_TWO
from tests.redis import redis, redis_server

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def at_once():
    """Nothing that another test has found is kept."""
    readiness.forget()
    yield
    readiness.forget()


@pytest.fixture
def worker():
    """A worker of that age in seconds."""

    def register(age: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO procrastinate_workers (last_heartbeat) "
                "VALUES (now() - make_interval(secs => %s))",
                [age],
            )

    return register


@pytest.fixture
def ready(client):
    def ask(status: int) -> dict:
        readiness.forget()
        answer = client.get("/ready")
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/json"
        return answer.json()

    return ask


def test_all_that_there_is_is_named(ready, worker):
    worker(0)
    worker(59)
    worker(61)
    assert ready(200) == {
        "status": "ready",
        "checks": {
            "database": {"state": "ok", "detail": "answers"},
            "migrations": {"state": "ok", "detail": "all applied"},
            "worker": {"state": "ok", "detail": "2 alive"},
            "cache": {"state": "ok", "detail": "memory of each process"},
            "distiller": {"state": "ok", "detail": "by rules"},
            "embeddings": {"state": "ok", "detail": "none; words alone"},
        },
    }


def test_without_a_worker_requests_are_served_and_wait(ready, worker, settings):
    worker(61)
    found = ready(200)
    assert found["status"] == "degraded"
    assert found["checks"]["worker"] == {"state": "failed", "detail": "none is alive; jobs wait"}
    settings.MIRIX_WORKER_STALLED_SECONDS = 90
    assert ready(200)["checks"]["worker"] == {"state": "ok", "detail": "1 alive"}


def test_a_database_that_is_behind_the_code_serves_nobody(ready, worker):
    worker(0)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'skills' AND name = %s", [LAST_TWO[1]])
    found = ready(503)
    assert found["status"] == "unavailable"
    assert found["checks"]["database"]["state"] == "ok"
    assert found["checks"]["migrations"] == {
        "state": "failed",
        "detail": "1 not applied; run ./run migrate",
    }
    assert found["checks"]["worker"]["state"] == "unknown"


def test_a_database_that_is_out_of_reach_is_told_without_its_address(client, monkeypatch):
    def refuse(*_: object) -> None:
        raise OperationalError("connection to server at 10.1.2.3 failed: password of mirix refused")

    monkeypatch.setattr(readiness, "unapplied_migrations", refuse)
    answer = client.get("/ready")
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    unknown = {"state": "unknown", "detail": "the database is out of reach"}
    assert answer.json()["checks"] | {"cache": 0, "distiller": 0, "embeddings": 0} == {
        "database": {"state": "failed", "detail": "out of reach"},
        "migrations": unknown,
        "worker": unknown,
        "cache": 0,
        "distiller": 0,
        "embeddings": 0,
    }
    assert "10.1.2.3" not in answer.content.decode()


def test_a_statement_has_two_seconds(client, monkeypatch, worker):
    said = []

    def ask(*_: object) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            said.append(cursor.fetchone()[0])
        return []

    monkeypatch.setattr(readiness, "unapplied_migrations", ask)
    assert client.get("/ready").status_code == 200
    assert said == ["2s"]


def test_redis_is_asked_where_there_is_one(ready, worker, settings):
    worker(0)
    with redis() as url:
        settings.CACHES = caches(url)
        assert ready(200)["checks"]["cache"] == {"state": "ok", "detail": "Redis answers"}
    with redis_server() as url:
        settings.CACHES = caches(url)
    found = ready(200)
    assert found["status"] == "degraded"
    assert found["checks"]["cache"] == {
        "state": "failed",
        "detail": "Redis is out of reach; all goes on without",
    }


def test_models_are_named_as_configured_or_missing_and_never_by_name(ready, worker, settings):
    worker(0)
    settings.MIRIX_LLM_MODEL, settings.MIRIX_EMBEDDING_MODEL = "secret-7b", "secret-e5"
    found = ready(200)
    assert found["checks"]["distiller"] == found["checks"]["embeddings"]
    assert found["checks"]["distiller"] == {"state": "ok", "detail": "a model is configured"}
    assert "secret" not in str(found)
    settings.MIRIX_DISTILLER = "offline"
    assert ready(200)["checks"]["distiller"]["detail"] == "by rules"
    settings.MIRIX_DISTILLER, settings.MIRIX_LLM_MODEL = "llm", ""
    found = ready(200)
    assert (found["status"], found["checks"]["distiller"]["state"]) == ("degraded", "failed")


def test_who_asks_often_costs_the_database_nothing(client, worker, django_assert_num_queries):
    client.get("/ready")
    with django_assert_num_queries(0):
        assert client.get("/ready").status_code == 200


def test_it_asks_for_the_migrations_where_everybody_does():
    assert readiness.unapplied_migrations is checks.unapplied_migrations
