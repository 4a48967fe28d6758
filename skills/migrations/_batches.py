"""What the data migrations share: rows in batches by key, and one UPDATE for a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connections, models, transaction
from django.db.models.expressions import RawSQL

BATCH = 1_000
MAX_BYTES = 4 * 1024 * 1024  # a text is held in many copies while it is read, made and written


def batches(rows: Any, using: str) -> Iterator[list[Any]]:
    """Yield the rows of a queryset in order of their key, each batch in a transaction of its own.

    A batch has at most `BATCH` rows of `MAX_BYTES` together, or a single row that is larger.

    By key and not by cursor: the batches are committed while this goes on, an interrupted run resumes, and
    a connection pooler may sit in between.
    """
    last = ""
    while True:
        with transaction.atomic(using=using):
            following = rows.using(using).filter(pk__gt=last).order_by("pk")
            count = how_many(following.values_list(size_of_row(rows.model, using), flat=True)[:BATCH])
            if not (batch := list(following[:count])):
                return
            last = batch[-1].pk
            yield batch


def size_of_row(model: Any, using: str) -> RawSQL:
    """Return the expression of how many bytes the texts of a row have."""
    table = connections[using].ops.quote_name(model._meta.db_table)
    return RawSQL(f"octet_length({table}::text)", (), output_field=models.IntegerField())  # noqa: S611


def how_many(sizes: Iterable[int]) -> int:
    """Return how many rows of these sizes, in bytes, make a batch: what fits, and one at least."""
    count = total = 0
    for size in sizes:
        total += size
        if count and total > MAX_BYTES:
            break
        count += 1
    return count


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
