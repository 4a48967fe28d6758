"""Jobs belong to the transaction that makes them necessary; those of dead workers are taken over."""

from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from mirix import queue

# A worker's queries are transactions of their own; one of them may fail.
pytestmark = pytest.mark.django_db(transaction=True)


def make_job(*, silent_for: int, attempts: int = 1, queueing_lock: str | None = None) -> int:
    """A job that a worker is doing; the worker's last sign of life is `silent_for` seconds old."""
    job_id = app.configure_task("test.task", queueing_lock=queueing_lock).defer()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - %s * interval '1 second') "
            "RETURNING id",
            [silent_for],
        )
        worker_id = cursor.fetchone()[0]
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', attempts = %s, worker_id = %s WHERE id = %s",
            [attempts, worker_id, job_id],
        )
    return job_id


def recover() -> int:
    return async_to_sync(queue.recover_stalled_jobs)(app.job_manager)


def status(job_id: int) -> str:
    return ProcrastinateJob.objects.get(pk=job_id).status


def test_the_job_of_a_dead_worker_waits_again():
    job = make_job(silent_for=61)
    assert recover() == 1
    assert status(job) == "todo"
    assert recover() == 0


def test_the_job_of_a_living_worker_is_left_alone():
    job = make_job(silent_for=50)
    assert recover() == 0
    assert status(job) == "doing"


def test_the_setting_says_when_a_worker_is_dead(settings):
    settings.MIRIX_WORKER_STALLED_SECONDS = 10
    job = make_job(silent_for=11)
    assert recover() == 1
    assert status(job) == "todo"


def test_a_job_whose_successor_waits_already_ends():
    job = make_job(silent_for=61, queueing_lock="only one")
    waiting = app.configure_task("test.task", queueing_lock="only one").defer()
    other = make_job(silent_for=61)
    assert recover() == 2
    assert [status(pk) for pk in (job, waiting, other)] == ["aborted", "todo", "todo"]


def test_a_job_that_kills_its_workers_fails_in_the_end():
    job = make_job(silent_for=61, attempts=5)
    recover()
    assert status(job) == "failed"


def test_a_job_carries_its_arguments():
    queue.defer("some.task", queue="some", row_id="row-1")

    job = ProcrastinateJob.objects.get(task_name="some.task")
    assert (job.task_name, job.queue_name, job.args) == ("some.task", "some", {"row_id": "row-1"})
    assert (job.status, job.lock, job.queueing_lock) == ("todo", None, None)


def test_a_job_vanishes_with_its_transaction_even_where_a_worker_runs():
    def fail() -> None:
        with transaction.atomic():
            queue.defer("some.task", queue="some")
            raise KeyError

    with app.replace_connector(app.connector.get_worker_connector()), pytest.raises(KeyError):
        fail()

    assert not ProcrastinateJob.objects.filter(task_name="some.task").exists()
