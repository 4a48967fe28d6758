"""Times of rows that are older than their rows: Django fills in `created_at` and `updated_at` by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.db.models import Model


def set_moments(
    model: type[Model], columns: Sequence[str], rows: Sequence[tuple[str, *tuple[datetime | None, ...]]]
) -> None:
    """Write times into rows that were just made: (key, one for each column); None leaves what is there."""
    if not rows:
        return
    quote = connection.ops.quote_name
    key = quote(str(model._meta.pk.column))
    sets = ", ".join(f"{quote(name)} = coalesce(new.{quote(name)}, old.{quote(name)})" for name in columns)
    names = ", ".join(quote(name) for name in ("key", *columns))
    arrays = ", ".join(["%s::text[]", *("%s::timestamptz[]" for _ in columns)])
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {quote(model._meta.db_table)} AS old SET {sets} "  # noqa: S608  (names of our own)
            f"FROM unnest({arrays}) AS new ({names}) WHERE old.{key} = new.{quote('key')}",
            [list(column) for column in zip(*rows, strict=True)],
        )
