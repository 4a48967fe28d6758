"""`migrate`, one at a time: a second one waits, and then finds nothing left to do.

It stands in Django's place because `mirix` comes first among the installed apps.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

LOCK = 0x6D69726978  # "mirix": the key to look for in pg_locks


class Command(Migrate):
    """See Django's command."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate while a transaction of a second connection holds the lock; it ends with this process."""
        holder = connections[options["database"]].copy()
        try:
            with holder.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
                super().handle(*args, **options)
        finally:
            holder.close()
