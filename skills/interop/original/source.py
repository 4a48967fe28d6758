"""Reading a live database of the original: one snapshot, read-only, a batch at a time.

All columns come as text (see `values`). Which columns a table has decides what it is, table by table: the
original makes missing tables at every start and alters none, so databases are mixed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.adapt import Buffer, Loader

from skills.interop.original.values import Row

BATCH = 500
CONNECT_SECONDS = 10
DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+://")
SETUP: tuple[LiteralString, ...] = (
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL datestyle = 'ISO, YMD'",
)
COLUMNS = """
    SELECT class.relname, attname, format_type(atttypid, NULL)
    FROM pg_attribute JOIN pg_class AS class ON class.oid = attrelid
    WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'v', 'm', 'f')
        AND pg_table_is_visible(class.oid) AND relnamespace NOT IN
            (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema', 'pg_toast'))
    ORDER BY class.relname, attnum
"""

T = TypeVar("T")


class SourceError(Exception):
    """The database cannot be read, or is none of the original; one line."""


class _LenientText(Loader):
    """Text of a database without an encoding may be anything."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


class Source:
    """A database of the original, as it was when the snapshot was taken."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._cursors = itertools.count(1)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        connection.adapters.register_loader("text", _LenientText)
        for statement in SETUP:
            connection.execute(statement)
        self.name = connection.info.dbname
        self.tables: dict[str, dict[str, str]] = {}
        """The types of the columns of each table."""
        for table, column, kind in connection.execute(COLUMNS):
            self.tables.setdefault(table, {})[column] = kind

    def has(self, table: str, *columns: str) -> bool:
        """Return whether there is such a table with all of these columns."""
        return table in self.tables and self.tables[table].keys() >= set(columns)

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return self._number(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table)))

    def count_distinct(self, table: str, column: str) -> int:
        """Return how many different values a column has."""
        query = sql.SQL("SELECT count(DISTINCT {}) FROM {}")
        return self._number(query.format(sql.Identifier(column), sql.Identifier(table)))

    def holds(self, table: str, column: str, value: str) -> bool:
        """Return whether a column holds a text anywhere."""
        if not self.has(table, column):
            return False
        query = sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {}::text = {} LIMIT 1) AS found")
        return bool(
            self._number(query.format(sql.Identifier(table), sql.Identifier(column), sql.Literal(value)))
        )

    def holds_any(self, table: str, column: str) -> bool:
        """Return whether a column is not NULL anywhere."""
        query = sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {} IS NOT NULL LIMIT 1) AS found")
        return bool(self._number(query.format(sql.Identifier(table), sql.Identifier(column))))

    def rows(self, table: str, columns: Sequence[str], *, order: Sequence[str] = ("id",)) -> Iterator[Row]:
        """Yield the rows of a table with those of `columns` that it has, in the order of those of `order`."""
        there = [name for name in columns if self.has(table, name)]
        picked = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in there)
        ordered = [sql.Identifier(name) for name in order if self.has(table, name)]
        query = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(
            picked, sql.Identifier(table), sql.SQL(", ").join(ordered)
        )
        with self._connection.cursor(name=f"rows_{next(self._cursors)}") as cursor:
            cursor.itersize = BATCH
            cursor.execute(query)
            for values in cursor:
                yield dict(zip(there, values, strict=True))

    def _number(self, query: sql.Composed) -> int:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


def batched(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    """Yield items in batches."""
    rest = iter(items)
    while batch := tuple(itertools.islice(rest, BATCH)):
        yield batch


@contextmanager
def opened(url: str) -> Iterator[Source]:
    """Connect to a database by its URL and take a snapshot. Raises `SourceError`; never quotes a password."""
    url = DRIVER.sub(r"\1://", url.strip())
    if not url.startswith(("postgres://", "postgresql://")):
        raise SourceError("--from: expected postgresql://user:password@host:5432/name")
    try:
        connection = psycopg.connect(
            url,
            connect_timeout=CONNECT_SECONDS,
            client_encoding="UTF8",
            application_name="mirix import",
        )
    except psycopg.ProgrammingError as error:  # it may quote the password
        raise SourceError(
            "--from: expected postgresql://user:password@host:5432/name, with %XX for special characters of "
            "the password"
        ) from error
    except psycopg.OperationalError as error:
        reason = next(iter(str(error).splitlines()), "no reason given")
        raise SourceError(f"--from: cannot connect: {reason}") from error
    with connection:
        try:
            source = Source(connection)
            if not source.has("organizations", "id") or not source.has("users", "id"):
                raise SourceError(f"--from: “{source.name}” is no database of the original MIRIX.")
            yield source
        except psycopg.Error as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise SourceError(f"the database that is read from: {reason}") from error
        finally:
            if not connection.closed:
                connection.rollback()
