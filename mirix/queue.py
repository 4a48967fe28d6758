"""The job queue: jobs are part of the transaction that makes them necessary, and survive their workers."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.tasks import configure_task

MAX_ATTEMPTS = 5

logger = logging.getLogger(__name__)


def defer(task: str, *, queue: str, **arguments: Any) -> None:
    """Enqueue a job by its task's name, through Django's connection: it commits or vanishes with the data.

    `app.configure_task(…).defer()` does the same in a web process or a command, but inside a worker it uses a
    connection of its own: there the job may start before the rows that it is about can be seen.
    """
    manager = JobManager(DjangoConnector())
    configure_task(name=task, job_manager=manager, queue=queue).defer(**arguments)


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
    if job.attempts < MAX_ATTEMPTS:
        try:
            await manager.retry_job(job)
        except ProcrastinateException:
            # One with the same queueing lock waits already and does the work.
            logger.info("job %s (%s) was left to the one that waits", job.id, job.task_name)
        else:
            logger.warning("job %s (%s) of a dead worker was taken over", job.id, job.task_name)
            return
    else:
        logger.error("job %s (%s) failed: %d workers died of it", job.id, job.task_name, job.attempts)
    await manager.finish_job(job, status=Status.FAILED, delete_job=False)
