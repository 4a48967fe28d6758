"""A word that stands in every column there is, and the search for it afterwards, by the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

WAYS = (
    "%(value)s",
    "jsonb_build_object('said', %(value)s::text)",
    "jsonb_build_array(%(value)s::text)",
    "ARRAY(SELECT %(value)s::varchar FROM unnest({column}))",
    "ARRAY[%(value)s]::varchar[]",
)
"""How a word gets into a column: the first that the database takes."""
NUMBERS = (
    models.IntegerField, models.FloatField, models.BooleanField, models.DateTimeField, models.DateField,
)  # fmt: skip


ADMINISTRATION = {
    "tenants.organization", "tenants.organizationsettings", "tenants.client", "tenants.apikey",
    "tenants.membership", "tenants.auditevent", "tenants.notification", "tenants.tokenusage",
    "tenants.erasurereceipt",
}  # fmt: skip
"""Models that hold nothing of end users. Every other one is erased, or the tests of erasure fail."""


def models_of_an_end_user() -> list[type[models.Model]]:
    """Return every model of ours that may hold something of an end user."""
    return [
        model
        for app in ("tenants", "conversations", "skills")
        for model in apps.get_app_config(app).get_models()
        if model._meta.label_lower not in ADMINISTRATION
    ]


def rows_of(model: type[models.Model]) -> str:
    """Return the condition for the rows of one end user, of an organization with that one alone."""
    if model._meta.label == "tenants.EndUser":
        return "id = %(end_user)s"
    return "end_user_id = %(end_user)s" if has(model, "end_user") else "organization_id = %(organization)s"


def has(model: type[models.Model], name: str) -> bool:
    return any(field.name == name for field in model._meta.concrete_fields)


def fill(model: type[models.Model], where: str, values: Any, canary: str) -> list[str]:
    """Write the word into every column of a model's rows that takes it; return those that take none."""
    table = model._meta.db_table
    left = []
    for field in model._meta.concrete_fields:
        if field.primary_key or field.is_relation or field.choices or isinstance(field, NUMBERS):
            continue
        if not _write(table, field.column, where, values, canary):
            left.append(f"{model._meta.label}.{field.name}")
    return left


def _write(table: str, column: str, where: str, values: Any, canary: str) -> bool:
    distinct = f"'{canary}-' || left(md5(ctid::text), 8)"
    for value, way in product((distinct, f"'{canary}'"), WAYS):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                new = way.format(column=column) % {"value": value}
                cursor.execute(f"UPDATE {table} SET {column} = {new} WHERE {where}", values)
                assert cursor.rowcount, f"make a row of {table} in tests/access/world.py"
                connection.check_constraints()
        except DatabaseError:
            continue
        return True
    return False


def tables() -> list[str]:
    """Return every table of the database."""
    return sorted(connection.introspection.table_names())


def found(canary: str, besides: Iterable[str] = ()) -> dict[str, int]:
    """Return by table how many rows hold the word in any column; statistics of the database included."""
    places = {table: f"SELECT count(*) FROM {table} t WHERE t::text ILIKE %s" for table in tables()}
    places["pg_stats"] = "SELECT count(*) FROM pg_stats s WHERE s::text ILIKE %s"
    return {place: n for place, n in _counts(places, canary) if n and place not in set(besides)}


def _counts(places: dict[str, str], canary: str) -> Iterator[tuple[str, int]]:
    with connection.cursor() as cursor:
        for place, statement in places.items():
            cursor.execute(statement, [f"%{canary}%"])
            yield place, cursor.fetchone()[0]
