"""When a run begins: asked for, or by itself; and what becomes of runs whose process or job was lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.intake import import_session
from mirix.tenants.owners import Owner
from skills.models import AutoDreamRun, RunState
from skills.runs import claim, claim_run
from skills.triggers import go_on, recover, request_run, trigger_all_due, trigger_if_due
from tests.factories import make_owner, make_run, make_session

pytestmark = pytest.mark.django_db


def jobs() -> list[str]:
    """The runs that jobs wait for."""
    rows = ProcrastinateJob.objects.filter(task_name="skills.run_dream", status="todo").order_by("id")
    return [args["run_id"] for args in rows.values_list("args", flat=True)]


def seal(owner: Owner, count: int, **fields) -> None:
    for _ in range(count):
        make_session(owner, [{"role": "user", "content": "No."}], **fields)


class TestAsked:
    def test_a_run_is_queued_with_its_job(self, owner):
        run = request_run(owner=owner, trigger="api", parameters={"last_n_sessions": 7})

        assert (run.state, run.trigger, run.parameters) == ("queued", "api", {"last_n_sessions": 7})
        assert AutoDreamRun.objects.get() == run
        assert jobs() == [run.pk]

    def test_the_one_that_waits_already_is_returned(self, owner):
        first = request_run(owner=owner, trigger="api")

        assert request_run(owner=owner, trigger="admin") == first
        assert jobs() == [first.pk]

    def test_the_one_that_is_going_on_is_returned(self, owner):
        held = claim(owner=owner, trigger="command")

        assert request_run(owner=owner, trigger="api").pk == held.run_id
        assert jobs() == []

    def test_a_dead_one_does_not_count(self, owner):
        dead = claim(owner=owner, trigger="command")
        AutoDreamRun.objects.update(heartbeat_at=Now() - timedelta(seconds=61))

        run = request_run(owner=owner, trigger="api")

        assert run.pk != dead.run_id
        assert jobs() == [run.pk]

    def test_other_owners_do_not_count(self, owner, stranger):
        first = request_run(owner=owner, trigger="api")
        second = request_run(owner=stranger, trigger="api")

        assert jobs() == [first.pk, second.pk]


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_one_is_queued():
    owner = make_owner()
    gate = threading.Barrier(6)

    def ask(_: int) -> str:
        try:
            gate.wait()
            return request_run(owner=owner, trigger="api").pk
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = set(pool.map(ask, range(6)))

    assert answers == {AutoDreamRun.objects.get().pk}
    assert jobs() == list(answers)


class TestByItself:
    def test_at_the_threshold(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 3
        seal(owner, 2)
        assert trigger_if_due(owner=owner) is None

        seal(owner, 1)
        run = trigger_if_due(owner=owner)

        assert (run.state, run.trigger, run.parameters) == ("queued", "automatic", {"last_n_sessions": 3})
        assert jobs() == [run.pk]

    def test_only_sessions_that_can_be_learned_from_count(self, owner, stranger, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 2
        seal(owner, 1)
        seal(owner, 2, state="open")
        seal(owner, 2, state="distilled", distilled_through=1)
        seal(owner, 2, tag="conversation")
        seal(owner, 2, next_attempt_at=timezone.now() + timedelta(hours=1), attempts=1)
        seal(stranger, 1)

        assert trigger_if_due(owner=owner) is None
        assert trigger_all_due() == 0

    def test_not_beside_an_open_run(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        seal(owner, 1)
        held = claim(owner=owner, trigger="command")
        assert trigger_if_due(owner=owner) is None

        held.end(RunState.FINISHED)
        waiting = trigger_if_due(owner=owner)
        assert waiting is not None
        assert trigger_if_due(owner=owner) is None

    def test_a_session_whose_next_attempt_is_due_needs_no_others(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 5
        seal(owner, 1, attempts=1, next_attempt_at=timezone.now() - timedelta(seconds=1))

        assert trigger_if_due(owner=owner) is not None

    @pytest.mark.parametrize(
        ("hours", "idle", "is_due"), [(24, 25, True), (24, 23, False), (1, 2, True), (0, 1_000, False)]
    )
    def test_a_session_that_nothing_follows_is_not_left_lying(self, owner, settings, hours, idle, is_due):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 5
        settings.MIRIX_SKILL_TRIGGER_IDLE_HOURS = hours
        seal(owner, 1, last_turn_at=timezone.now() - timedelta(hours=idle))
        seal(owner, 1, last_turn_at=timezone.now())

        assert trigger_all_due() == int(is_due)
        assert len(jobs()) == int(is_due)

    def test_not_soon_after_a_run_that_failed(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        seal(owner, 1)
        failed = make_run(owner, state="failed", finished_at=timezone.now() - timedelta(minutes=9))
        assert trigger_if_due(owner=owner) is None

        AutoDreamRun.objects.filter(pk=failed.pk).update(finished_at=timezone.now() - timedelta(minutes=11))
        assert trigger_if_due(owner=owner) is not None

    def test_at_once_after_a_run_that_was_interrupted(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        seal(owner, 1)
        make_run(owner, state="interrupted", finished_at=timezone.now())

        assert trigger_if_due(owner=owner) is not None

    def test_a_threshold_of_nought_is_never(self, owner, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 0
        seal(owner, 1)

        assert trigger_if_due(owner=owner) is None

    def test_the_safety_net_finds_every_owner(self, owner, stranger, settings):
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 1
        seal(owner, 1)
        seal(stranger, 1)
        make_owner(owner.organization)

        assert trigger_all_due() == 2
        assert {run.end_user for run in AutoDreamRun.objects.all()} == {owner.end_user, stranger.end_user}
        assert trigger_all_due() == 0


class TestAtSealing:
    """Conversations know nothing of runs; they only tell that they sealed something."""

    @pytest.fixture(autouse=True)
    def threshold(self, settings) -> None:
        settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 2

    def work_on(self, owner: Owner, client_row, session_id: str) -> None:
        import_session(
            client=client_row,
            owner=owner,
            session_id=session_id,
            messages=[{"role": "user", "content": f"No, {session_id}."}],
        )

    def test_the_session_that_fills_the_number_starts_a_run(self, owner, client_row):
        self.work_on(owner, client_row, "s-1")
        assert jobs() == []

        self.work_on(owner, client_row, "s-2")

        run = AutoDreamRun.objects.get()
        assert (run.end_user, run.trigger, run.state) == (owner.end_user, "automatic", "queued")
        assert jobs() == [run.pk]

    def test_what_is_not_committed_starts_nothing(self, owner, client_row):
        self.work_on(owner, client_row, "s-1")
        with transaction.atomic():
            self.work_on(owner, client_row, "s-2")
            assert len(jobs()) == 1
            transaction.set_rollback(True)

        assert jobs() == []
        assert AutoDreamRun.objects.count() == 0


class TestRecovery:
    def lose_job(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM procrastinate_jobs")

    def test_a_waiting_run_without_a_job_gets_one(self, owner):
        run = request_run(owner=owner, trigger="api")
        self.lose_job()

        assert recover() == 1
        assert jobs() == [run.pk]
        assert recover() == 0, "it has one now"

    def test_a_run_whose_job_is_just_being_started_is_not_lost(self, owner):
        request_run(owner=owner, trigger="api")
        with connection.cursor() as cursor:
            cursor.execute("UPDATE procrastinate_jobs SET status = 'doing'")

        assert recover() == 0

    def test_a_run_that_found_its_owner_busy_goes_on_when_the_other_ends(self, owner):
        """Two callers at once: the second asked just before the first one's run began."""
        first = request_run(owner=owner, trigger="api")
        claimed = claim_run(run_id=first.pk)
        second = make_run(owner, state="queued", trigger="api")
        self.lose_job()  # it was done, and found the owner busy
        claimed.end(RunState.FINISHED)

        go_on(owner=owner)
        assert jobs() == [second.pk]

    def test_a_run_that_waits_for_another_is_not_lost(self, owner):
        run = request_run(owner=owner, trigger="api")
        other = claim(owner=owner, trigger="command")
        self.lose_job()
        assert recover() == 0

        other.end(RunState.FINISHED)
        assert recover() == 1
        assert jobs() == [run.pk]

    def test_a_run_of_a_dead_worker_gets_a_new_job(self, owner):
        run = request_run(owner=owner, trigger="api")
        claim_run(run_id=run.pk)
        self.lose_job()
        assert recover() == 0

        AutoDreamRun.objects.update(heartbeat_at=Now() - timedelta(seconds=61))
        assert recover() == 1
        assert jobs() == [run.pk]
        assert claim_run(run_id=run.pk).fence == 2

    def test_a_run_that_was_let_go_gets_a_new_job_at_once(self, owner):
        run = request_run(owner=owner, trigger="api")
        claim_run(run_id=run.pk).let_go()
        self.lose_job()

        assert recover() == 1
        assert jobs() == [run.pk]

    def test_a_dead_commands_run_is_marked(self, owner):
        claim(owner=owner, trigger="command")
        assert recover() == 0

        AutoDreamRun.objects.update(heartbeat_at=Now() - timedelta(seconds=61))
        assert recover() == 1
        run = AutoDreamRun.objects.get()
        assert (run.state, run.error) == ("abandoned", "Its process gave no sign of life any more.")
        assert run.finished_at is not None
        assert jobs() == []

    def test_a_run_that_kills_its_workers_fails_in_the_end(self, owner):
        run = request_run(owner=owner, trigger="api")
        for _ in range(5):
            claim_run(run_id=run.pk).let_go()

        assert recover() == 1
        run.refresh_from_db()
        assert (run.state, run.error) == ("failed", "5 workers died of it.")

    def test_runs_that_have_ended_are_left_alone(self, owner):
        make_run(owner, state="failed", trigger="api")

        assert recover() == 0
        assert jobs() == []
