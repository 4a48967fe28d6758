"""Several workers at once: what is periodic is done once for all of them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from django.db import connection

from tests.processes import Process, eventually

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

TICKING = """
from django.core.management import call_command
from procrastinate.contrib.django import app

@app.periodic(cron="* * * * * *")
@app.task(name="test.tick", queue="care")
def tick(timestamp):
    pass

call_command("worker")
"""
TICKS = """
    SELECT job.args ->> 'timestamp', count(DISTINCT job.id), count(*)
    FROM procrastinate_jobs job
    JOIN procrastinate_events event ON event.job_id = job.id AND event.type = 'started'
    WHERE task_name = 'test.tick' GROUP BY 1
"""


def rows(sql: str) -> list[tuple[str, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def test_what_is_periodic_is_done_once_for_all_workers():
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Process(TICKING))
        eventually(lambda: rows("SELECT id FROM procrastinate_workers")[1:])
        ticks_alone = len(rows(TICKS))
        eventually(lambda: len(rows(TICKS)) >= ticks_alone + 4)
        ticks = rows(TICKS)

    assert {(jobs, starts) for _, jobs, starts in ticks} == {(1, 1)}
