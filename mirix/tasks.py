"""Periodic care for the job queue itself."""

from __future__ import annotations

from procrastinate import JobContext
from procrastinate.contrib.django import app

from mirix import queue

KEEP_FINISHED_HOURS = 24
KEEP_FAILED_HOURS = 24 * 30


# No `lock`: the lock of a recovery that died with its worker would end all recovery.
@app.periodic(cron="* * * * * */10")
@app.task(
    name="mirix.recover_stalled_jobs",
    queue="care",
    queueing_lock="mirix.recover_stalled_jobs",
    pass_context=True,
)
async def recover_stalled_jobs(context: JobContext, timestamp: int) -> None:
    """Take over the jobs of dead workers."""
    await queue.recover_stalled_jobs(context.app.job_manager)


@app.periodic(cron="17 * * * *")
@app.task(
    name="mirix.remove_old_jobs", queue="care", queueing_lock="mirix.remove_old_jobs", pass_context=True
)
async def remove_old_jobs(context: JobContext, timestamp: int) -> None:
    """Delete finished jobs after a day and failed ones after a month."""
    manager = context.app.job_manager
    await manager.delete_old_jobs(nb_hours=KEEP_FINISHED_HOURS)
    await manager.delete_old_jobs(
        nb_hours=KEEP_FAILED_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
    )
