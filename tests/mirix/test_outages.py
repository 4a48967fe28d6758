"""A step that is done again once the database is back."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from mirix import outages
from mirix.outages import through_outage
from mirix.tenants.models import Organization
from tests.factories import make_organization

pytestmark = pytest.mark.django_db(transaction=True)


def cut_off() -> None:
    """End this thread's connection, as a restart of the server does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = cursor.fetchone()[0]

    def end() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        connection.close()

    other = threading.Thread(target=end)
    other.start()
    other.join()


class Step:
    """Writes a row in a transaction; its connection is cut off the first `times` times."""

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def __call__(self) -> int:
        self.calls += 1
        with transaction.atomic():
            make_organization(f"organization {self.calls}")
            if self.calls <= self.times:
                cut_off()
            make_organization(f"another {self.calls}")
        return self.calls


def test_a_step_whose_connection_is_lost_is_done_again_and_stored_once(caplog):
    step = Step(times=2)
    assert through_outage(step, patience=10) == 3
    names = Organization.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == ["another 3", "organization 3"]
    assert caplog.text.count("The database is out of reach: terminating connection") == 2


def test_patience_ends():
    step = Step(times=99)
    with pytest.raises(OperationalError, match="terminating connection"):
        through_outage(step, patience=0.2)
    assert step.calls > 1
    assert not Organization.objects.exists()


def test_a_database_that_cannot_be_reached_is_waited_for(monkeypatch):
    connection.close()
    pauses: list[float] = []

    def refuse(*_: Any) -> None:
        raise psycopg.OperationalError("connection refused")

    with monkeypatch.context() as down:
        down.setattr(connection, "get_new_connection", refuse)

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                down.undo()

        down.setattr(outages, "sleep", pause)
        assert through_outage(Organization.objects.count, patience=10) == 0
    assert pauses == [0.1, 0.2, 0.4]


def test_no_step_is_done_again_within_a_transaction():
    """What was written before it is lost as well."""
    step = Step(times=1)
    with pytest.raises(OperationalError), transaction.atomic():
        through_outage(step, patience=10)
    assert step.calls == 1


def test_what_is_no_outage_is_raised_at_once():
    calls = []

    def wait_for_too_long() -> None:
        calls.append(1)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 20")
            cursor.execute("SELECT pg_sleep(10)")

    with pytest.raises(OperationalError, match="statement timeout"):
        through_outage(wait_for_too_long, patience=10)
    assert len(calls) == 1
