"""Every kind of job there is: it may come twice, late, after its worker died, and about what is gone."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob

from mirix import queue

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = {"kind": "user", "name": "someone", "id": "1"}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "conversations.store_turns": {"intake_id": "intake-gone"},
    "conversations.replay": {"intake_ids": ["intake-gone"], "actor": ACTOR},
    "skills.run_dream": {"run_id": "run-gone"},
    "skills.embed_skills": {"skill_ids": ["proc-gone"]},
    "tenants.deliver_notification": {"notification_id": "notification-gone", "attempt": 1},
    "tenants.finish_erasure": {"tables": ["no_table_of_ours"]},
}
"""Of the jobs that are about something, which is gone by now. All others are periodic."""


def kinds() -> list[str]:
    """Return the names of all tasks of ours."""
    app.perform_import_paths()
    ours = ("mirix.", "tenants.", "conversations.", "skills.")
    return sorted(name for name in app.tasks if name.startswith(ours))


def left_by_a_dead_worker(task: str) -> int:
    """Make a job that a worker was doing when it was killed."""
    job_id = app.configure_task(task).defer(**ARGUMENTS.get(task, {"timestamp": 0}))
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) "
            "VALUES (now() - interval '1 hour') RETURNING id"
        )
        (worker_id,) = cursor.fetchone()
        cursor.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', attempts = 1, worker_id = %s WHERE id = %s",
            [worker_id, job_id],
        )
    return job_id


def test_every_task_is_in_this_test():
    periodic = {periodic.task.name for periodic in app.periodic_registry.periodic_tasks.values()}
    assert set(kinds()) - periodic == ARGUMENTS.keys()


def test_those_that_their_worker_died_of_are_done_by_the_next_and_find_nothing(work):
    left = {left_by_a_dead_worker(task): task for task in kinds()}

    assert async_to_sync(queue.recover_stalled_jobs)(app.job_manager) == len(left)
    work()

    states = ProcrastinateJob.objects.filter(pk__in=left).values_list("pk", "status")
    assert {left[pk]: status for pk, status in states} == dict.fromkeys(kinds(), "succeeded")
