"""`dbshell`, which opens no database of the original either.

It stands in Django's place because `mirix` comes first among the installed apps.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands.dbshell import Command as Shell
from django.db import connections


class Command(Shell):
    """See Django's command, which opens psql without ever connecting itself."""

    def handle(self, **options: Any) -> None:
        """Connect, which a database of the original refuses; then open the shell."""
        connection = connections[options["database"]]
        connection.ensure_connection()
        connection.close()
        super().handle(**options)
