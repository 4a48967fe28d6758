"""Procrastinate's own command, refusing to work on a database that is behind the code.

It stands in the package's place because `mirix` comes first among the installed apps.
"""

from __future__ import annotations

from django.db import connections
from procrastinate.contrib.django.management.commands.procrastinate import Command as Procrastinate

from mirix.commands import MigrationsRequired


class Command(MigrationsRequired, Procrastinate):
    """See the package."""

    def check_migrations(self) -> None:
        """Check, and give the connection back: a worker opens its own, and may run for months."""
        super().check_migrations()
        connections.close_all()
