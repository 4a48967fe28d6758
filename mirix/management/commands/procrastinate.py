"""Procrastinate's own command, refusing to work on a database that is behind the code.

Its worker outlives a restart of the database.

It stands in the package's place because `mirix` comes first among the installed apps.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from procrastinate.contrib.django import app
from procrastinate.contrib.django.management.commands.procrastinate import Command as Procrastinate
from procrastinate.contrib.django.utils import connector_params

from mirix.commands import MigrationsRequired
from mirix.outages import ListeningConnector


class Command(MigrationsRequired, Procrastinate):
    """See the package."""

    def check_migrations(self) -> None:
        """Check, and give the connection back: a worker opens its own, and may run for months."""
        super().check_migrations()
        connections.close_all()

    def handle(self, *args: Any, **options: Any) -> None:
        """Run it over connections for workers."""
        with app.replace_connector(ListeningConnector(kwargs=connector_params())):
            super().handle(*args, app=app, **options)
