"""What the database remembers of values: its statistics quote some of each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

LOCK_TIMEOUT = "2s"
# An index over an expression has statistics of its own, of what the expression makes of the rows.
CLEARED = """
    SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
    WHERE schemaname = current_schema() AND tablename IN (
        SELECT relname FROM pg_class WHERE oid = %(table)s::regclass
            OR oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = %(table)s::regclass))
"""
# Of a key to another table, or of another table to this one, the values are ids of ours.
COLUMNS = """
    SELECT quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), quote_ident(c.collname)
    FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation AND c.collname <> 'default'
    WHERE a.attrelid = %(table)s::regclass AND a.attnum > 0 AND NOT a.attisdropped
        AND EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = current_schema()
                    AND s.tablename = %(table)s AND s.attname = a.attname)
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND (
            k.conrelid = a.attrelid AND a.attnum = ANY (k.conkey)
            OR k.confrelid = a.attrelid AND a.attnum = ANY (k.confkey)))
    ORDER BY a.attnum
"""


def renew_statistics(tables: Sequence[str]) -> bool:
    """Have the database look through tables anew; false where it has to be tried again.

    Within a transaction nothing is done. A table that has no row left keeps its last statistics, whatever it
    is told, so that they are dropped.
    """
    if connection.in_atomic_block:
        return True
    known = set(connection.introspection.table_names())
    results = [_renew(table) for table in tables if table in known]
    return all(results)


def _renew(table: str) -> bool:
    name = connection.ops.quote_name(table)
    with connection.cursor() as cursor:
        cursor.execute(f"VACUUM (ANALYZE) {name}")
        if not _is_empty(cursor, name):
            return True
        if _can_clear(cursor):
            cursor.execute(CLEARED, {"table": name})
            return True
    return _clear_by_altering(table, name)


def _clear_by_altering(table: str, name: str) -> bool:
    """Do it before PostgreSQL 18: a column whose type is set, be it to what it is, loses its statistics.

    Nobody may use the table meanwhile, so that it is locked, if that takes no time, and looked at once more.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            cursor.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
            if not _is_empty(cursor, name):
                return False  # there is something to look through again
            cursor.execute(COLUMNS, {"table": table})
            changes = [
                f"ALTER COLUMN {column} TYPE {kind}" + (f" COLLATE {collation}" if collation else "")
                for column, kind, collation in cursor.fetchall()
            ]
            if changes:
                cursor.execute(f"ALTER TABLE {name} {', '.join(changes)}")
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return False
        raise
    return True


def _can_clear(cursor: Any) -> bool:
    cursor.execute("SELECT to_regproc('pg_clear_attribute_stats') IS NOT NULL")
    return bool(cursor.fetchone()[0])


def _is_empty(cursor: Any, name: str) -> bool:
    cursor.execute(f"SELECT NOT EXISTS (SELECT FROM {name})")  # noqa: S608
    return bool(cursor.fetchone()[0])
