"""A cursor for the few statements that are sent all the time: the server keeps their plan.

Django puts values into the text of a statement, which the server then reads and plans each time anew. Here
values travel beside it, and after `prepare_threshold` times of a connection the statement is prepared. The
option is one of `DATABASE_URL`: behind a pooler that gives each transaction another connection it must be
turned off (`?prepare_threshold=None`), and all goes on as before.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper
from psycopg import Cursor


class PreparedCursor(Cursor[Any]):
    """Has its connection count and prepare the statements of this cursor, and no others."""

    def execute(self, *args: Any, **kwargs: Any) -> Self:
        """Execute as psycopg does."""
        self.connection.prepare_threshold = settings.MIRIX_PREPARE_THRESHOLD
        try:
            return super().execute(*args, **kwargs)
        finally:
            self.connection.prepare_threshold = None


def prepared_cursor() -> CursorWrapper:
    """Return a cursor of the default connection, as Django's own otherwise.

    The types of values must be clear from the statement, as they are beside a column or with a cast.
    """
    connection.ensure_connection()
    cursor: Any = PreparedCursor(connection.connection)  # what Django's own cursors wrap
    return (
        connection.make_debug_cursor(cursor) if connection.queries_logged else connection.make_cursor(cursor)
    )
