"""Rows by the thousand, in one statement for each table: what no test could wait for row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import Field, Model


def fill(model: Any, source: str, /, **columns: str) -> None:
    """Insert a row of `model` for each row of the FROM clause `source`.

    `columns` are SQL expressions by the name of the field; the others get what the model gives them. A key
    that is not named must be one that the database counts.
    """
    values: dict[str, tuple[str, list[Any]]] = {}
    for field in model._meta.concrete_fields:
        if field.name in columns:
            values[field.column] = (columns[field.name].replace("%", "%%"), [])
        elif not field.primary_key:
            values[field.column] = _default(field)
    names = ", ".join(map(connection.ops.quote_name, values))
    expressions = ", ".join(expression for expression, _ in values.values())
    parameters = [value for _, given in values.values() for value in given]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({names}) SELECT {expressions}"
            f" FROM {source.replace('%', '%%')}",
            parameters,
        )


def multiply(row: Model, times: int, /, **columns: str) -> None:
    """Insert `times` copies of a stored row, `i` from 1; `columns` are what differs, the key if not counted.

    In the expressions the row is `row`.
    """
    fields = [field for field in row._meta.concrete_fields if not field.primary_key]
    same = {field.name: f"row.{connection.ops.quote_name(field.column)}" for field in fields}
    if row._meta.pk.get_internal_type() == "CharField":
        same["id"] = "row.id || '-' || i"
    key = connection.ops.quote_name(row._meta.pk.column)
    source = f"(SELECT * FROM {row._meta.db_table} WHERE {key} = '{row.pk}') AS row"
    with unchecked():
        fill(type(row), f"{source}, generate_series(1, {times}) AS i", **same | columns)


@contextmanager
def unchecked() -> Iterator[None]:
    """Have no foreign key looked up and no trigger fired: whoever fills knows what belongs together."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # a transaction undone undoes this too
        yield
        cursor.execute("RESET session_replication_role")


def _default(field: Field[Any, Any]) -> tuple[str, list[Any]]:
    if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
        return "now()", []
    return f"%s::{field.db_type(connection)}", [field.get_db_prep_save(field.get_default(), connection)]
