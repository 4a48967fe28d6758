"""The job queue: jobs are part of the transaction that makes them necessary, and survive their workers."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db import connection
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

MAX_ATTEMPTS = 5

DROP = """
WITH gone AS (SELECT jsonb_array_elements(%s::jsonb) AS id)
DELETE FROM procrastinate_jobs WHERE task_name = %s AND status <> 'doing' AND args ? %s AND CASE
    WHEN jsonb_typeof(args -> %s) = 'array' THEN
        NOT EXISTS (SELECT FROM jsonb_array_elements(args -> %s) AS a WHERE a NOT IN (SELECT id FROM gone))
    ELSE args -> %s IN (SELECT id FROM gone)
END
"""

logger = logging.getLogger(__name__)


def defer(task: str, *, queue: str, **arguments: Any) -> None:
    """Enqueue a job by its task's name, through Django's connection: it commits or vanishes with the data.

    `app.configure_task(…).defer()` does the same in a web process or a command, but inside a worker it uses a
    connection of its own: there the job may start before the rows that it is about can be seen.
    """
    manager = JobManager(DjangoConnector())
    configure_task(name=task, job_manager=manager, queue=queue).defer(**arguments)


def drop(task: str, argument: str, ids: Collection[str]) -> int:
    """Delete the jobs of a task that are about these ids alone; return how many.

    `argument` holds an id or a list of them. A job that is being done stays: its worker is to end it.
    """
    if not ids:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(DROP, [json.dumps(sorted(ids)), task, *[argument] * 4])
        return cursor.rowcount


async def recover_stalled_jobs(manager: JobManager) -> int:
    """Give every job whose worker is silent for too long to the next worker; return how many there were.

    A worker that only slept finishes its job all the same, so jobs must bear to run twice. A job that took
    `MAX_ATTEMPTS` workers with it has failed.
    """
    stalled = list(
        await manager.get_stalled_jobs(seconds_since_heartbeat=settings.MIRIX_WORKER_STALLED_SECONDS)
    )
    for job in stalled:
        await _recover(manager, job)
    return len(stalled)


async def _recover(manager: JobManager, job: Job) -> None:
    ended = Status.FAILED
    if job.attempts < MAX_ATTEMPTS:
        try:
            await manager.retry_job(job)
        except ProcrastinateException:
            # One with the same queueing lock waits already and does the work: nothing has failed.
            ended = Status.ABORTED
            logger.info("job %s (%s) was left to the one that waits", job.id, job.task_name)
        else:
            logger.warning("job %s (%s) of a dead worker was taken over", job.id, job.task_name)
            return
    else:
        logger.error("job %s (%s) failed: %d workers died of it", job.id, job.task_name, job.attempts)
    await manager.finish_job(job, status=ended, delete_job=False)
