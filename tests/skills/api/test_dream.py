"""POST `/memory/auto_dream`."""

from __future__ import annotations

from datetime import timedelta
from threading import BoundedSemaphore
from typing import Any

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.test import APIClient

from conversations.models import Session
from mirix.tenants.scope import outside_request_scope
from skills import dream as dreaming
from skills.api import dream as door
from skills.evolution.types import EvolutionReport
from skills.models import AutoDreamRun, RunState, SkillExperience
from skills.runs import claim
from skills.triggers import request_run
from tests.factories import make_client, make_key, make_owner, make_run, make_session
from tests.skills.scripted import ScriptedDistiller, nothing

pytestmark = pytest.mark.django_db

PATH = "/memory/auto_dream?user_id=alice&wait=0"
NOT_FOUND = b'{"detail":"Not found."}'


@pytest.fixture(autouse=True)
def distiller(monkeypatch) -> ScriptedDistiller:
    scripted = ScriptedDistiller(dull=nothing)
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": scripted)
    monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())
    return scripted


def post(api, path: str = PATH, body: Any = None) -> Any:
    return api.post(path, body if body is not None else {}, format="json")


def jobs() -> list[str]:
    rows = ProcrastinateJob.objects.filter(task_name="skills.run_dream").order_by("id")
    return [args["run_id"] for args in rows.values_list("args", flat=True)]


def test_the_run_is_left_to_the_worker(api, owner):
    answer = post(api, body={"mode": "procedural", "last_n_sessions": 7})

    run = AutoDreamRun.objects.get()
    assert answer.status_code == 202
    assert answer.json() == {
        "success": True,
        "message": "The run waits for a worker.",
        "run_id": run.pk,
        "state": "queued",
        "dry_run": False,
        "last_dream_at": None,
        "start_date": None,
        "end_date": None,
        "processed": {"procedural": {"total": 0, "removed": 0, "merged": 0, "conflicts_resolved": 0}},
        "skills_changed": 0,
        "changes": {"created": [], "edited": [], "deleted": []},
        "proposals": [],
        "sessions": {"distilled": 0, "empty": 0, "retry": 0, "dead": 0, "deferred": 0},
    }
    assert (run.state, run.trigger, run.end_user) == ("queued", "api", owner.end_user)
    assert run.parameters == {"last_n_sessions": 7}
    assert jobs() == [run.pk]


def test_without_a_worker_nobody_waits_longer_than_asked_for(api, owner, monkeypatch):
    now, slept = [1_000.0], []
    monkeypatch.setattr(door, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(door, "sleep", sleep)

    assert post(api, "/memory/auto_dream?user_id=alice&wait=3").status_code == 202
    assert sum(slept) == pytest.approx(3)
    slept.clear()
    assert post(api, "/memory/auto_dream?user_id=alice").status_code == 202
    assert sum(slept) == pytest.approx(25)
    slept.clear()
    assert post(api, "/memory/auto_dream?user_id=alice&wait=9999").status_code == 202
    assert sum(slept) == pytest.approx(25)


def test_callers_who_wait_leave_threads_to_others(api, owner, monkeypatch):
    monkeypatch.setattr(door, "_places", BoundedSemaphore(1))
    monkeypatch.setattr(door, "sleep", lambda _: pytest.fail("the one place is taken"))

    with door._places:
        assert post(api, "/memory/auto_dream?user_id=alice&wait=25").status_code == 202


@pytest.mark.django_db(transaction=True)
def test_a_run_that_ends_in_time_is_answered_whole(work, monkeypatch):
    owner = make_owner(user_id="alice")
    api = door_of(owner)
    make_session(owner, [{"role": "user", "content": "No."}])
    make_session(owner, [{"role": "user", "content": "dull"}])
    monkeypatch.setattr(door, "sleep", lambda _: work())

    answer = post(api, "/memory/auto_dream?user_id=alice&wait=5")

    run = AutoDreamRun.objects.get()
    assert answer.status_code == 200
    body = answer.json()
    assert body["message"] == "2 sessions distilled into 1 experience."
    assert (body["success"], body["run_id"], body["state"]) == (True, run.pk, "finished")
    assert body["processed"]["procedural"]["total"] == 1
    assert body["sessions"] == {"distilled": 1, "empty": 1, "retry": 0, "dead": 0, "deferred": 0}
    assert body["last_dream_at"] == run.finished_at.isoformat().replace("+00:00", "Z")


def door_of(owner) -> Any:
    return APIClient(headers={"X-API-Key": make_key(make_client(owner.organization))})


def test_what_changed_is_told_by_ids(api, owner):
    run = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 5})
    AutoDreamRun.objects.filter(pk=run.pk).update(
        counts={
            "sessions": {"distilled": 3, "empty": 0, "retry": 1, "dead": 1, "deferred": 0},
            "experiences": 4,
            "created": ["proc-1"],
            "edited": ["proc-2"],
            "proposals": ["rev-1", "rev-2"],
        }
    )

    body = post(api).json()

    assert body["skills_changed"] == 2
    assert body["changes"] == {"created": ["proc-1"], "edited": ["proc-2"], "deleted": []}
    assert body["proposals"] == ["rev-1", "rev-2"]


def test_the_running_one_is_answered_with_what_it_has_done(api, owner):
    held = claim(owner=owner, trigger="automatic", parameters={"last_n_sessions": 5})

    answer = post(api)

    assert answer.status_code == 202
    assert (answer.json()["run_id"], answer.json()["state"]) == (held.run_id, "running")
    assert answer.json()["message"] == "The run is going on. So far: No session distilled."
    assert AutoDreamRun.objects.count() == 1
    assert jobs() == []


def test_two_calls_share_one_run(api, owner):
    first, second = post(api), post(api)

    assert first.json() == second.json()
    assert len(jobs()) == 1


def test_a_call_for_nothing_special_takes_whatever_is_going_on(api, owner):
    held = claim(owner=owner, trigger="command", parameters={"last_n_sessions": 50})

    assert post(api).json()["run_id"] == held.run_id
    assert post(api, body={"last_n_sessions": 50}).json()["run_id"] == held.run_id


def test_a_call_for_something_else_conflicts_with_the_running_one(api, owner):
    held = claim(owner=owner, trigger="command", parameters={"last_n_sessions": 50})

    answer = post(api, body={"last_n_sessions": 3})

    assert answer.status_code == 409
    assert held.run_id in answer.json()["detail"]
    assert AutoDreamRun.objects.count() == 1


def test_a_failed_run_is_no_success(api, owner, monkeypatch):
    run = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 5})

    @outside_request_scope()
    def fail(_: float) -> None:
        AutoDreamRun.objects.filter(pk=run.pk).update(state="failed", error="ValueError: secret")

    monkeypatch.setattr(door, "sleep", fail)
    answer = post(api, "/memory/auto_dream?user_id=alice&wait=1")

    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["state"] == "failed"
    assert answer.json()["message"] == (
        "The run failed (ValueError); what it had stored is kept. No session distilled."
    )


def test_a_run_erased_while_waiting_is_not_there(api, owner, monkeypatch):
    monkeypatch.setattr(door, "sleep", lambda _: AutoDreamRun.objects.for_owner(owner).delete())

    answer = post(api, "/memory/auto_dream?user_id=alice&wait=1")

    assert (answer.status_code, answer.content) == (404, NOT_FOUND)


NOTHING = {"sessions": 0, "turns": 0, "characters": 0, "tokens": 0, "proposer_tokens": 0}


class TestDryRun:
    def test_it_only_tells(self, api, owner, stranger):
        make_session(owner, [{"role": "user", "content": "1234"}, {"role": "tool", "content": "56"}])
        make_session(stranger, [{"role": "user", "content": "not ours"}])
        last = make_run(owner, finished_at=timezone.now() - timedelta(days=1))
        before = list(Session.objects.values())

        answer = post(api, body={"dry_run": True})

        assert answer.status_code == 200
        body = answer.json()
        assert body["message"] == (
            "Nothing was done. A run would distil 1 session with 2 turns and 6 characters."
        )
        assert body["would_distil"] == NOTHING | {"sessions": 1, "turns": 2, "characters": 6}
        assert (body["success"], body["dry_run"], body["run_id"], body["state"]) == (True, True, None, None)
        assert body["processed"]["procedural"]["total"] == 0
        assert body["last_dream_at"] == last.finished_at.isoformat().replace("+00:00", "Z")
        assert list(Session.objects.values()) == before
        assert AutoDreamRun.objects.count() == 1
        assert SkillExperience.objects.count() == len(jobs()) == 0

    def test_it_counts_no_more_than_a_run_would_read(self, api, owner):
        for _ in range(7):
            make_session(owner, [{"role": "user", "content": "x"}])

        def would_read(**body: Any) -> int:
            return post(api, body={"dry_run": True} | body).json()["would_distil"]["sessions"]

        assert would_read() == would_read(last_n_sessions=0) == would_read(last_n_sessions=None) == 5
        assert would_read(last_n_sessions=2) == 2
        assert would_read(last_n_sessions=50) == 7


class TestWho:
    def test_without_user_id_it_is_the_clients_default_end_user(self, api, client_row):
        owner = make_owner(client_row.organization, client_row.default_user_id)

        assert post(api, "/memory/auto_dream?wait=0").status_code == 202
        assert AutoDreamRun.objects.get().end_user == owner.end_user

    def test_the_user_may_stand_in_the_body(self, api, owner):
        assert post(api, "/memory/auto_dream?wait=0", {"user_id": "alice"}).status_code == 202
        assert AutoDreamRun.objects.get().end_user == owner.end_user

    @pytest.mark.parametrize("query", ["user_id=nobody&wait=0", "wait=0"])
    @pytest.mark.parametrize("dry_run", [True, False])
    def test_an_unknown_user_is_not_there(self, api, owner, query, dry_run):
        answer = post(api, f"/memory/auto_dream?{query}", {"dry_run": dry_run})

        assert (answer.status_code, answer.content) == (404, NOT_FOUND)
        assert AutoDreamRun.objects.count() == 0

    def test_a_strangers_user_is_their_own(self, stranger_api, owner, stranger):
        make_session(owner, [{"role": "user", "content": "secret"}])

        body = post(stranger_api, body={"dry_run": True}).json()
        assert body["would_distil"] == NOTHING
        post(stranger_api)
        assert AutoDreamRun.objects.get().organization == stranger.organization

    def test_a_user_of_another_organization_alone_is_not_there(self, stranger_api, owner):
        make_owner(owner.organization, "bob")

        answer = post(stranger_api, "/memory/auto_dream?user_id=bob&wait=0")

        assert (answer.status_code, answer.content) == (404, NOT_FOUND)
        assert AutoDreamRun.objects.count() == 0

    def test_a_key_that_may_only_read_starts_nothing(self, read_api, owner):
        assert post(read_api).status_code == 403
        assert post(read_api, body={"dry_run": True}).status_code == 403
        assert AutoDreamRun.objects.count() == len(jobs()) == 0

    def test_nobody_starts_anything_without_a_key(self, client, owner):
        assert client.post(PATH, {}, content_type="application/json").status_code == 401
        assert AutoDreamRun.objects.count() == 0


class TestInput:
    @pytest.mark.parametrize("mode", ["procedural", "Procedural", "PROCEDURAL"])
    def test_the_one_mode(self, api, owner, mode):
        assert post(api, body={"mode": mode}).status_code == 202

    @pytest.mark.parametrize("mode", ["experience", "core", "dreamy"])
    def test_other_modes_are_refused_naming_the_one_there_is(self, api, owner, mode):
        answer = post(api, body={"mode": mode})

        assert answer.status_code == 400
        assert answer.json() == {"mode": [f"There is no mode '{mode}' here; the one mode is “procedural”."]}

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"mode": None}, "mode"),
            ({"mode": ["procedural"]}, "mode"),
            ({"dry_run": "perhaps"}, "dry_run"),
            ({"last_n_sessions": -1}, "last_n_sessions"),
            ({"last_n_sessions": 1.5}, "last_n_sessions"),
            ({"last_n_sessions": True}, "last_n_sessions"),
            ({"last_n_sessions": 10**30}, "last_n_sessions"),
            ({"last_n_sessions": "1_0"}, "last_n_sessions"),
            ({"last_n_sessions": "٣"}, "last_n_sessions"),
            ({"last_n_sessions": " 3"}, "last_n_sessions"),
            ({"model": {"name": "x"}}, "model"),
            ({"model": "a\x00"}, "model"),
            ({"model": "x" * 129}, "model"),
            ({"last_n_session": 5}, "last_n_session"),
            ({"user_id": "bob"}, "user_id"),
            ([], "detail"),
            ("dream", "detail"),
        ],
    )
    def test_a_wrong_body_names_the_field(self, api, owner, body, field):
        answer = post(api, body=body)

        assert answer.status_code == 400
        assert list(answer.json()) == [field]
        assert AutoDreamRun.objects.count() == 0

    @pytest.mark.parametrize("wait", ["-1", "soon", "nan"])
    def test_a_wrong_wait_is_named(self, api, owner, wait):
        answer = post(api, f"/memory/auto_dream?user_id=alice&wait={wait}")

        assert answer.status_code == 400
        assert list(answer.json()) == ["wait"]

    def test_an_empty_body_is_all_defaults(self, api, owner):
        assert api.post(PATH).status_code == 202
        assert AutoDreamRun.objects.get().parameters == {"last_n_sessions": 5}

    def test_a_span_of_dates_is_accepted_as_the_original_did(self, api, owner):
        answer = post(api, body={"start_date": "2026-01-01T00:00:00Z", "end_date": None})

        assert (answer.status_code, answer.json()["start_date"], answer.json()["end_date"]) == (
            202,
            None,
            None,
        )

    def test_a_model_that_is_not_used_is_said_to_be(self, api, owner):
        answer = post(api, body={"model": "gpt-9"})

        assert answer.json()["message"] == (
            "The run waits for a worker. The model 'gpt-9' was not used: this run distils by rules."
        )
        assert AutoDreamRun.objects.get().parameters == {"last_n_sessions": 5, "model": "gpt-9"}


def test_the_last_dream_is_the_last_that_finished(api, owner):
    finished = make_run(owner, finished_at=timezone.now() - timedelta(hours=2))
    make_run(owner, state="failed", finished_at=timezone.now() - timedelta(hours=1))

    body = post(api).json()

    assert body["last_dream_at"] == finished.finished_at.isoformat().replace("+00:00", "Z")
    assert body["state"] == RunState.QUEUED
