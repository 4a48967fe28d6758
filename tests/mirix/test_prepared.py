"""Statements that are sent all the time are prepared, and a transaction's rules hold for them as for any."""

from __future__ import annotations

import pytest
from django.db import DataError, IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from mirix.prepared import prepared_cursor

pytestmark = pytest.mark.django_db
STATEMENT = "SELECT %s::integer + 1"


def prepared() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall()]


def ask(value: int) -> int:
    with prepared_cursor() as cursor:
        cursor.execute(STATEMENT, [value])
        return cursor.fetchone()[0]


def test_a_statement_is_prepared_once_it_was_sent_often_enough(settings):
    settings.MIRIX_PREPARE_THRESHOLD = 2
    assert [ask(number) for number in range(4)] == [1, 2, 3, 4]
    assert "SELECT $1::integer + 1" in prepared()


def test_behind_a_pooler_nothing_is_prepared(settings):
    settings.MIRIX_PREPARE_THRESHOLD = None
    before = prepared()
    assert [ask(number) for number in range(10)] == list(range(1, 11))
    assert prepared() == before


def test_queries_are_counted_and_errors_are_djangos():
    with CaptureQueriesContext(connection) as captured:
        ask(1)
    assert [query["sql"] for query in captured.captured_queries] == ["SELECT $1::integer + 1"]
    with pytest.raises(DataError), prepared_cursor() as cursor:
        cursor.execute(STATEMENT, ["x"])


def test_an_error_of_a_constraint_is_djangos_too(owner):
    with pytest.raises(IntegrityError), prepared_cursor() as cursor:
        cursor.execute("INSERT INTO tenants_organization (id) VALUES (%s)", [owner.organization.pk])


def test_nothing_is_kept_of_the_statements_of_django(settings):
    """It would be their whole text with all values, a hundred times."""
    ask(1)
    before = len(connection.connection._prepared._counts)
    with connection.cursor() as cursor:
        for number in range(10):
            cursor.execute("SELECT %s", [f"{number}" * 1_000])
    assert len(connection.connection._prepared._counts) == before
