"""The worker's tasks: known by name, run by schedule, safe to run twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from procrastinate.contrib.django import app

from conversations import tasks
from conversations.envelope import checked
from conversations.intake import accept
from conversations.models import IntakeRecord, Session
from tests.factories import make_session

HELLO = {"role": "user", "content": "hello"}


class Context:
    """A job's context; the worker asks it to stop, or not."""

    def __init__(self, *, stop: bool = False) -> None:
        self.stop = stop

    def should_abort(self) -> bool:
        return self.stop


@pytest.fixture
def queued(owner, client_row) -> IntakeRecord:
    envelope = checked(messages=[HELLO], session_id="s-1")
    return accept(client=client_row, owner=owner, envelope=envelope, wait=False).record


def test_the_job_of_a_request_stores_it_and_may_run_twice(queued):
    tasks.store_turns(queued.pk)
    tasks.store_turns(queued.pk)
    assert Session.objects.get().turn_count == 1


def test_a_job_for_a_request_that_was_erased_does_nothing(queued):
    pk = queued.pk
    queued.delete()
    tasks.store_turns(pk)
    assert not Session.objects.exists()


def test_overdue_requests_are_stored_unless_the_worker_stops(queued, settings):
    settings.MIRIX_WORKER_STALLED_SECONDS = -1
    tasks.store_overdue(Context(stop=True), 0)
    queued.refresh_from_db()
    assert queued.state == "queued"
    tasks.store_overdue(Context(), 0)
    queued.refresh_from_db()
    assert queued.state == "stored"


def test_idle_sessions_are_sealed(owner):
    make_session(owner, [HELLO], state="open", last_turn_at=timezone.now() - timedelta(days=1))
    tasks.seal_sessions(0)
    assert Session.objects.get().state == "sealed"


@pytest.mark.parametrize(
    ("name", "cron"),
    [
        ("conversations.store_overdue", "* * * * *"),
        ("conversations.seal_sessions", "* * * * *"),
        ("mirix.recover_stalled_jobs", "* * * * * */10"),
        ("mirix.remove_old_jobs", "17 * * * *"),
    ],
)
def test_periodic_tasks_are_scheduled_without_lock_or_retry(name, cron):
    [periodic] = [p for p in app.periodic_registry.periodic_tasks.values() if p.task.name == name]
    assert periodic.cron == cron
    assert periodic.task.queueing_lock == name
    assert (periodic.task.lock, periodic.task.retry_strategy) == (None, None)
