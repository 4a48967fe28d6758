"""What the data migrations share: rows in batches by key, and one UPDATE for a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connections, transaction

BATCH = 1_000


def batches(rows: Any, using: str) -> Iterator[list[Any]]:
    """Yield the rows of a queryset in order of their key, each batch in a transaction of its own.

    By key and not by cursor: the batches are committed while this goes on, an interrupted run resumes, and
    a connection pooler may sit in between.
    """
    last = ""
    while True:
        with transaction.atomic(using=using):
            batch = list(rows.using(using).filter(pk__gt=last).order_by("pk")[:BATCH])
            if not batch:
                return
            last = batch[-1].pk
            yield batch


def update(model: Any, columns: dict[str, str], rows: Sequence[tuple[Any, ...]], using: str) -> None:
    """Set columns (name → PostgreSQL type) of the rows given as (id, value, …), in one statement."""
    quote = connections[using].ops.quote_name
    names = [quote(model._meta.get_field(name).column) for name in columns]
    statement = (
        f"UPDATE {quote(model._meta.db_table)} AS target"  # noqa: S608 names are the model's, values parameters
        f" SET {', '.join(f'{name} = new.{name}' for name in names)}"
        f" FROM unnest(%s::text[], {', '.join(f'%s::{kind}[]' for kind in columns.values())})"
        f" AS new(id, {', '.join(names)}) WHERE target.id = new.id"
    )
    with connections[using].cursor() as cursor:
        cursor.execute(statement, [list(values) for values in zip(*rows, strict=True)])
