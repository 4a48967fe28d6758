"""How the job queue stands: what waits in it and for how long, and who works."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection

from mirix.measures import Measure, Readings

UNFINISHED = """
    SELECT queue_name, status::text, count(*) FROM procrastinate_jobs
    WHERE status IN ('todo', 'doing', 'failed') GROUP BY 1, 2 ORDER BY 1, 2
"""
# A job waits from when it is due; the queue keeps no other time of its own than its events.
WAITING = """
    SELECT job.queue_name,
           extract(epoch FROM now() - min(coalesce(job.scheduled_at, deferred.at)))::float8
    FROM procrastinate_jobs job
    LEFT JOIN procrastinate_events deferred ON deferred.job_id = job.id AND deferred.type = 'deferred'
    WHERE job.status = 'todo' AND (job.scheduled_at IS NULL OR job.scheduled_at <= now())
    GROUP BY 1 ORDER BY 1
"""
ALIVE = """
    SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %s)
"""


def workers_alive() -> int:
    """Return how many workers have given a sign of life within `MIRIX_WORKER_STALLED_SECONDS`."""
    ((alive,),) = _rows(ALIVE, settings.MIRIX_WORKER_STALLED_SECONDS)
    return int(alive)


def _unfinished() -> Readings:
    return [({"queue": queue, "status": status}, number) for queue, status, number in _rows(UNFINISHED)]


def _oldest() -> Readings:
    return [({"queue": queue}, max(0.0, age)) for queue, age in _rows(WAITING) if age is not None]


def _workers() -> Readings:
    return [({}, workers_alive())]


MEASURES = (
    Measure(
        name="mirix_jobs",
        text="Jobs that wait (todo), are being done (doing) or have failed for good (failed), by queue.",
        read=_unfinished,
    ),
    Measure(
        name="mirix_jobs_oldest_seconds",
        text="For how long the job that has waited longest is due, by queue.",
        read=_oldest,
    ),
    Measure(
        name="mirix_workers",
        text="Workers that gave a sign of life within MIRIX_WORKER_STALLED_SECONDS.",
        read=_workers,
    ),
)


def _rows(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()
