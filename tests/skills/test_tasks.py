"""The worker's door, called as a function and by a real worker."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models.functions import Now
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from skills import dream as dreaming
from skills import tasks
from skills.evolution.types import EvolutionReport
from skills.models import AutoDreamRun, RunState, SkillExperience
from skills.runs import claim, claim_run
from skills.triggers import request_run
from tests.factories import make_owner, make_run, make_session
from tests.skills.scripted import ScriptedDistiller


@pytest.fixture(autouse=True)
def distiller(monkeypatch) -> ScriptedDistiller:
    scripted = ScriptedDistiller()
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": scripted)
    monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())
    return scripted


def run_dream(run_id: str, *, stop: bool = False) -> None:
    context: Any = SimpleNamespace(should_abort=lambda: stop)
    tasks.run_dream(context, run_id=run_id)


@pytest.mark.django_db
class TestRunDream:
    def test_it_does_a_queued_run(self, owner):
        make_session(owner, [{"role": "user", "content": "No."}])
        run = request_run(owner=owner, trigger="api")

        run_dream(run.pk)

        run.refresh_from_db()
        assert (run.state, run.fence) == ("finished", 1)
        assert run.counts["experiences"] == SkillExperience.objects.count() == 1

    def test_it_goes_on_with_a_run_of_a_dead_worker(self, owner):
        make_session(owner, [{"role": "user", "content": "No."}])
        run = request_run(owner=owner, trigger="api")
        claim_run(run_id=run.pk)
        AutoDreamRun.objects.update(heartbeat_at=Now() - timedelta(seconds=61))

        run_dream(run.pk)

        run.refresh_from_db()
        assert (run.state, run.fence) == ("finished", 2)

    def test_what_one_run_does_not_take_is_for_the_next(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 2
        for _ in range(5):
            make_session(owner, [{"role": "user", "content": "No."}])
        first = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 2})

        run_dream(first.pk)
        second = AutoDreamRun.objects.get(state="queued")
        assert (second.trigger, second.parameters) == ("automatic", {"last_n_sessions": 2})

        run_dream(second.pk)
        assert not AutoDreamRun.objects.filter(state="queued").exists()
        assert SkillExperience.objects.count() == 4

    def test_a_second_job_of_the_same_run_does_nothing(self, owner, distiller):
        make_session(owner, [{"role": "user", "content": "No."}])
        run = request_run(owner=owner, trigger="api")
        held = claim_run(run_id=run.pk)

        run_dream(run.pk)
        assert distiller.calls == []

        held.end(RunState.FINISHED)
        run_dream(run.pk)
        assert distiller.calls == []

    def test_a_run_waits_while_another_is_going_on(self, owner, distiller):
        make_session(owner, [{"role": "user", "content": "No."}])
        claim(owner=owner, trigger="command")
        waiting = make_run(owner, state="queued", trigger="api")

        run_dream(waiting.pk)

        waiting.refresh_from_db()
        assert waiting.state == "queued"
        assert distiller.calls == []

    def test_an_erased_run_is_no_fault(self, db):
        run_dream("run-none")

    def test_a_stopping_worker_leaves_the_run_to_the_next(self, owner, distiller):
        make_session(owner, [{"role": "user", "content": "No."}])
        run = request_run(owner=owner, trigger="api")

        run_dream(run.pk, stop=True)
        run.refresh_from_db()
        assert (run.state, run.heartbeat_at) == ("running", None)
        assert distiller.calls == []

        run_dream(run.pk)
        run.refresh_from_db()
        assert (run.state, run.fence) == ("finished", 2)


@pytest.mark.django_db(transaction=True)
class TestWorker:
    def test_a_real_worker_does_it(self, work):
        owner = make_owner()
        make_session(owner, [{"role": "user", "content": "No."}])
        run = request_run(owner=owner, trigger="api")

        work()

        run.refresh_from_db()
        assert run.state == "finished"
        assert ProcrastinateJob.objects.get(task_name="skills.run_dream").status == "succeeded"

    def test_a_failed_run_fails_its_job_and_says_why(self, work, monkeypatch):
        def evolve(**_: Any) -> EvolutionReport:
            raise ValueError("no")

        monkeypatch.setattr(dreaming, "evolve", evolve)
        run = request_run(owner=make_owner(), trigger="api")

        work()

        run.refresh_from_db()
        assert (run.state, run.error) == ("failed", "ValueError: no")
        assert ProcrastinateJob.objects.get(task_name="skills.run_dream").status == "failed"

    def test_regular_looks_start_what_is_due_and_recover_what_was_lost(self, work, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        due, lost = make_owner(), make_owner()
        make_session(due, [{"role": "user", "content": "No."}])
        run = make_run(lost, state="running", trigger="api", fence=1)

        tasks.recover_runs(0)
        tasks.trigger_runs(0)
        work()

        run.refresh_from_db()
        assert (run.state, run.fence) == ("finished", 2)
        automatic = AutoDreamRun.objects.get(end_user=due.end_user)
        assert (automatic.state, automatic.trigger) == ("finished", "automatic")
        assert automatic.counts["experiences"] == 1

    def test_the_looks_are_scheduled(self):
        crons = {name: task.cron for (name, _), task in app.periodic_registry.periodic_tasks.items()}
        assert crons["skills.recover_runs"] == "* * * * * */10"
        assert crons["skills.trigger_runs"] == "* * * * *"
