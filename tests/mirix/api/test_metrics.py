"""GET /metrics: who may read it, and what it says."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta

import pytest
from django.core import checks
from django.core.cache import cache as django_cache
from django.db import DatabaseError, OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.models import IntakeRecord
from mirix import measures
from mirix.caches import caches
from mirix.counting import counter
from mirix.measures import Measure
from mirix.tenants.usage import count_tokens
from skills.models import SearchEvent
from skills.search import service
from skills.search.cache import cache
from tests.factories import make_attempt, make_proposal, make_run, make_session, make_skill
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
        measures.forget()
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


@pytest.mark.parametrize(
    ("token", "warned"),
    [
        ("", False),
        pytest.param(secrets.token_urlsafe(24), False, id="random"),
        pytest.param(secrets.token_urlsafe(48), False, id="random and long"),
        ("metrics", True),
        ("prometheus-reads-the-metrics", True),
        ("x" * 64, True),
        ("FILL-IN-with-some-of-your-own-0123456789", True),
    ],
)
def test_a_token_that_can_be_guessed_is_found_before_a_deployment(settings, token, warned):
    settings.MIRIX_METRICS_TOKEN = token
    found = checks.run_checks(tags=["security"], include_deployment_checks=True)
    assert ("mirix.W004" in [each.id for each in found]) is warned
    assert "mirix.W004" not in [each.id for each in checks.run_checks(tags=["security"])]
    assert not any(token and token in str(each) for each in found)


def test_it_is_text_of_the_format_whatever_is_accepted(client, token):
    for accepted in ("*/*", "text/plain", "application/openmetrics-text;version=1.0.0", "application/json"):
        answer = client.get("/metrics", headers=token | {"Accept": accepted})
        assert answer.status_code == 200
        assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "# TYPE mirix_http_requests_total counter\n" in answer.content.decode()


def test_what_the_database_knows_is_kept_for_a_while(client, token, django_assert_num_queries):
    client.get("/metrics", headers=token)
    with django_assert_num_queries(0):
        assert client.get("/metrics", headers=token).status_code == 200


def test_without_a_database_it_says_so_and_what_was_counted_here(client, token, numbers, monkeypatch):
    def refuse() -> None:
        raise OperationalError("no route to host")

    client.get("/health")
    monkeypatch.setattr(connection, "ensure_connection", refuse)
    told = numbers()
    assert told["mirix_database_up"] == 0
    assert told['mirix_http_requests_total{method="GET",status="200"}'] >= 1
    assert "mirix_workers" not in told


def test_a_number_that_takes_too_long_costs_no_other_one(numbers, monkeypatch):
    def slow() -> list:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 1")
            cursor.execute("SELECT pg_sleep(1)")
        return []

    monkeypatch.setitem(measures._measures, "mirix_slow", Measure(name="mirix_slow", text="Slow.", read=slow))
    failed = 'mirix_measure_failures_total{measure="mirix_slow"}'
    told = numbers()
    assert (told["mirix_database_up"], told["mirix_workers"], told[failed]) == (1, 0, 1)
    assert "mirix_slow" not in told


def test_the_queue_is_told_with_how_long_it_waits(numbers):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now()), (now() - '1h'::interval)"
        )
        cursor.execute(
            """
            INSERT INTO procrastinate_jobs (queue_name, task_name, status, scheduled_at) VALUES
                ('dream', 't', 'todo', NULL), ('dream', 't', 'todo', now() - '90s'::interval),
                ('dream', 't', 'todo', now() + '1h'::interval), ('care', 't', 'failed', NULL),
                ('care', 't', 'succeeded', NULL), ('intake', 't', 'todo', now() + '1h'::interval)
            """
        )
    told = numbers()
    assert told["mirix_workers"] == 1
    jobs = {name: number for name, number in told.items() if name.startswith("mirix_jobs{")}
    assert jobs == {
        'mirix_jobs{queue="dream",status="todo"}': 3,
        'mirix_jobs{queue="care",status="failed"}': 1,
        'mirix_jobs{queue="intake",status="todo"}': 1,
    }
    waited = {name: number for name, number in told.items() if name.startswith("mirix_jobs_oldest")}
    assert list(waited) == ['mirix_jobs_oldest_seconds{queue="dream"}']
    assert 90 <= waited['mirix_jobs_oldest_seconds{queue="dream"}'] < 100


def test_what_came_in_and_was_learned_is_told_of_all_organizations(
    api, stranger_api, owner, stranger, numbers
):
    for caller in (api, stranger_api):
        body = {"session_id": "s", "user_id": "alice", "messages": [{"role": "user", "content": "hello"}]}
        assert caller.post("/memory/add_sync", body, format="json").status_code == 200
        assert caller.post("/memory/add", body, format="json").status_code == 200
    IntakeRecord.objects.filter(state="queued").update(created_at=timezone.now() - timedelta(minutes=2))
    for each in (owner, stranger):
        make_skill(each)
        count_tokens(organization=each.organization, prompt=100, completion=20)
    told = numbers()
    expected = {
        'mirix_intake_requests{state="queued"}': 2,
        'mirix_intake_requests{state="stored"}': 2,
        'mirix_sessions{state="open"}': 2,
        'mirix_skills{status="active"}': 2,
        'mirix_model_tokens_total{kind="prompt"}': 200,
        'mirix_model_tokens_total{kind="completion"}': 40,
        "mirix_model_calls_total": 2,
        "mirix_proposals_waiting": 0,
        "mirix_proposals_oldest_seconds": 0,
        "mirix_experiences_quarantined": 0,
    }
    assert {name: told[name] for name in expected} == expected
    assert 120 <= told["mirix_intake_oldest_seconds"] < 130


def test_how_questions_and_runs_ended_and_what_waits_is_told(owner, numbers):
    run, session = make_run(owner, state="finished"), make_session(owner)
    for verdict in ("ok", "ok", "retry", "dead"):
        make_attempt(run, session, verdict=verdict)
    make_proposal(owner)
    told = numbers()
    assert {n: v for n, v in told.items() if n.startswith("mirix_verdicts")} == {
        'mirix_verdicts{asked="distiller",verdict="ok"}': 2,
        'mirix_verdicts{asked="distiller",verdict="retry"}': 1,
        'mirix_verdicts{asked="distiller",verdict="dead"}': 1,
    }
    assert told['mirix_runs{state="finished"}'] == 1
    assert told["mirix_proposals_waiting"] == 1
    assert 0 <= told["mirix_proposals_oldest_seconds"] < 10


def test_how_long_searches_take_is_told_by_method_and_lane(read_api, owner, numbers, endpoint):
    make_skill(owner)
    before = numbers()
    for method in ("hybrid", "hybrid", "bm25", "embedding", "string_match"):
        asked = {"query": f"order {method}", "user_id": "alice", "search_method": method}
        assert read_api.get("/memory/search", asked).status_code == 200
    after = numbers()

    def grown(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    for method, count in {"hybrid": 2, "bm25": 1, "embedding": 1, "string_match": 1}.items():
        assert grown(f'mirix_search_seconds_count{{method="{method}"}}') == count
        assert grown(f'mirix_search_seconds_bucket{{method="{method}",le="+Inf"}}') == count
        assert 0 < grown(f'mirix_search_seconds_sum{{method="{method}"}}') < 60
    for lane in ("lexical", "semantic", "vector"):  # what was found once is kept for a while
        assert grown(f'mirix_search_lane_seconds_count{{lane="{lane}"}}') >= 2


def test_searches_that_had_to_do_without_something_are_counted(read_api, owner, numbers):
    before = numbers()
    for method in ("hybrid", "hybrid", "bm25"):
        asked = {"query": "order", "user_id": "alice", "search_method": method}
        assert read_api.get("/memory/search", asked).status_code == 200
    after = numbers()
    name = 'mirix_search_degraded_total{method="%s"}'
    grown = {
        method: after.get(name % method, 0) - before.get(name % method, 0) for method in ("hybrid", "bm25")
    }
    assert grown == {"hybrid": 2, "bm25": 0}


def test_no_number_costs_more_with_more_rows(client, token, owner, django_assert_num_queries):
    def queries() -> int:
        measures.forget()
        with CaptureQueriesContext(connection) as asked:
            assert client.get("/metrics", headers=token).status_code == 200
        return len(asked)

    one = queries()
    for _ in range(5):
        make_skill(owner)
        make_session(owner)
    assert queries() == one


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
