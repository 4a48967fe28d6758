"""Jobs of the worker: to look at, in words that every font holds."""

from __future__ import annotations

import pytest
from django.db import connection

from conversations.tasks import store_turns
from tests.factories import make_superuser
from tests.mirix.admin.test_pages import as_user, changelist, page

pytestmark = pytest.mark.django_db

JOBS = "procrastinate.procrastinatejob"


@pytest.mark.parametrize("status", ["todo", "doing", "succeeded", "failed", "cancelled", "aborted"])
def test_the_status_of_a_job_is_a_word_without_a_picture(status):
    job = store_turns.defer(intake_id="intake-1")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = %s WHERE id = %s", [status, job])
    browser = as_user(make_superuser())
    for path in (changelist(JOBS), page(JOBS, job)):
        text = browser.get(path).content.decode()
        assert status.capitalize() in text
        assert [sign for sign in text if ord(sign) > 0x2300] == []


def test_a_job_tells_its_events_and_asks_for_none():
    job = store_turns.defer(intake_id="intake-1")
    text = as_user(make_superuser()).get(page(JOBS, job)).content.decode()
    assert "deferred at" in text
    assert "<select" not in text.partition("What happened")[2]
