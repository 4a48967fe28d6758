"""GET `/v1/runs` and `/v1/runs/{id}`."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.models import Session
from tests.factories import (
    make_attempt,
    make_experience,
    make_owner,
    make_proposer_call,
    make_run,
    make_session,
)

pytestmark = pytest.mark.django_db


def ids(answer) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_a_run_shows_what_it_did_with_each_session(read_api, owner):
    run = make_run(
        owner,
        parameters={"last_n_sessions": 5},
        counts={"experiences": 2},
        notes=[{"reason": "near"}],
        tokens=7,
    )
    good, bad = (make_session(owner, [{"role": "user", "content": "no"}]) for _ in range(2))
    make_attempt(run, good, duration_ms=12, raw_reply="[]", prompt_tokens=5, completion_tokens=2)
    make_attempt(run, bad, verdict="retry", error="KeyError: 'secret'")

    answer = read_api.get(f"/v1/runs/{run.pk}")

    assert answer.status_code == 200
    row = answer.json()
    attempts = row.pop("attempts")
    assert row == {
        "id": run.pk,
        "user_id": "alice",
        "trigger": "command",
        "state": "finished",
        "parameters": {"last_n_sessions": 5},
        "counts": {"experiences": 2},
        "notes": [{"reason": "near"}],
        "tokens": 7,
        "error": "",
        "created_at": run.created_at.isoformat().replace("+00:00", "Z"),
        "started_at": None,
        "heartbeat_at": None,
        "finished_at": None,
        "progress": {"read": 0, "left": 0},
        "proposer_calls": [],
    }
    assert [(a["session_id"], a["verdict"], a["error"], a["duration_ms"]) for a in attempts] == [
        (good.session_id, "ok", "", 12),
        (bad.session_id, "retry", "KeyError", 0),
    ]
    assert all("raw_reply" not in attempt for attempt in attempts)


def test_an_attempt_shows_what_it_cost_and_what_was_dropped(read_api, owner):
    run = make_run(owner)
    make_attempt(
        run,
        make_session(owner),
        distiller="llm",
        model="m-1",
        prompt_version="1-abc",
        calls=2,
        prompt_tokens=900,
        completion_tokens=30,
        dropped=[{"reason": "It quotes nothing.", "text": "the model's own words"}],
        flags=["closing_fence"],
    )

    answer = read_api.get(f"/v1/runs/{run.pk}")

    [attempt] = answer.json()["attempts"]
    assert (attempt["distiller"], attempt["model"], attempt["prompt_version"]) == ("llm", "m-1", "1-abc")
    assert (attempt["calls"], attempt["prompt_tokens"], attempt["completion_tokens"]) == (2, 900, 30)
    assert (attempt["dropped"], attempt["flags"]) == (["It quotes nothing."], ["closing_fence"])
    assert "the model's own words" not in answer.content.decode()


def test_a_run_that_goes_on_shows_how_far_it_is(read_api, owner):
    run = make_run(
        owner, state="running", heartbeat_at=timezone.now(), parameters={"last_n_sessions": 3}, counts={}
    )
    done, *_ = (make_session(owner, [{"role": "user", "content": "no"}]) for _ in range(5))
    make_attempt(run, done, prompt_tokens=40, completion_tokens=2)
    make_experience(owner, done, attempt=run.attempts.get())
    Session.objects.filter(pk=done.pk).update(state="distilled", distilled_through=1)

    row = read_api.get(f"/v1/runs/{run.pk}").json()

    assert row["state"] == "running"
    assert row["heartbeat_at"] == run.heartbeat_at.isoformat().replace("+00:00", "Z")
    assert row["progress"] == {"read": 1, "left": 2}
    assert row["tokens"] == 42
    assert (row["counts"]["sessions"]["distilled"], row["counts"]["experiences"]) == (1, 1)
    run.refresh_from_db()
    assert (run.counts, run.tokens) == ({}, 0)


def test_a_run_that_is_over_is_shown_as_it_ended(read_api, owner):
    counts = {"sessions": {"distilled": 2, "empty": 1, "retry": 1, "dead": 0, "deferred": 3}}
    run = make_run(owner, counts=counts, tokens=7)
    make_session(owner, [{"role": "user", "content": "no"}])

    row = read_api.get(f"/v1/runs/{run.pk}").json()

    assert (row["progress"], row["counts"], row["tokens"]) == ({"read": 4, "left": 0}, counts, 7)


def test_the_reason_of_a_failure_is_shown_without_its_details(read_api, owner):
    run = make_run(owner, state="failed", error="OperationalError: connection to 10.0.0.5 refused")

    assert read_api.get(f"/v1/runs/{run.pk}").json()["error"] == "OperationalError"


def test_lists_are_newest_first_and_paged_by_cursor(read_api, owner):
    made = [make_run(owner).pk for _ in range(5)]

    first = read_api.get("/v1/runs", {"limit": 2})
    second = read_api.get(first.json()["next"])

    assert ids(first) + ids(second) == made[:0:-1]
    assert "attempts" not in first.json()["results"][0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "failed"}, ["failed"]),
        ({"trigger": "api"}, ["api"]),
        ({"user_id": "bob"}, ["bobs"]),
        ({"user_id": "nobody"}, []),
        ({"created_after": "2020-01-01T00:00:00Z", "state": "failed"}, ["failed"]),
    ],
)
def test_lists_can_be_narrowed(read_api, owner, query, expected):
    made = {
        "failed": make_run(owner, state="failed"),
        "api": make_run(owner, trigger="api"),
        "bobs": make_run(make_owner(owner.organization, "bob")),
    }

    assert ids(read_api.get("/v1/runs", query)) == [made[name].pk for name in expected]


@pytest.mark.parametrize("query", [{"state": "asleep"}, {"trigger": "moon"}, {"user_id": "a\x00b"}])
def test_wrong_filters_name_their_field(read_api, owner, query):
    answer = read_api.get("/v1/runs", query)
    assert answer.status_code == 400
    assert list(answer.json()) == list(query)


def test_a_stranger_sees_nothing(stranger_api, owner):
    run = make_run(owner)

    assert ids(stranger_api.get("/v1/runs")) == []
    foreign = stranger_api.get(f"/v1/runs/{run.pk}")
    missing = stranger_api.get("/v1/runs/run-none")
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content == b'{"detail":"Not found."}'


def test_nobody_reads_without_a_key(client, owner):
    assert client.get("/v1/runs").status_code == 401


def test_more_rows_take_no_more_queries(read_api, owner):
    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert read_api.get(path).status_code == 200
        return len(captured)

    run = make_run(owner)
    make_attempt(run, make_session(owner))
    make_proposer_call(run)
    read_api.get("/v1/runs")
    before = queries("/v1/runs"), queries(f"/v1/runs/{run.pk}")
    for _ in range(19):
        make_run(owner)
        make_attempt(run, make_session(owner))
        make_proposer_call(run)

    assert (queries("/v1/runs"), queries(f"/v1/runs/{run.pk}")) == before == (2, 4)
