"""Procrastinate's own command, refusing to work on a database that is behind the code.

Its worker outlives a restart of the database. Where it does not, it ends as what has failed, so that whoever
watches over it starts it again.

It stands in the package's place because `mirix` comes first among the installed apps.
"""

from __future__ import annotations

import asyncio
from typing import Any

from django.core.management.base import CommandError
from django.db import connections
from procrastinate import App, cli, signals
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
        if options.get("func") is cli.worker_:
            options["func"] = work
        with app.replace_connector(ListeningConnector(kwargs=connector_params())):
            super().handle(*args, app=app, **options)


async def work(app: App, **options: Any) -> None:
    """Run a worker until it is told to stop.

    It also stops by itself, and calls that a success, where the database was out of reach for longer than its
    connections wait: that is a `CommandError` here.
    """
    worker = asyncio.create_task(cli.worker_(app=app, install_signal_handlers=False, **options))
    with signals.on_stop(worker.cancel):
        try:
            await worker
        except asyncio.CancelledError:
            return
    if options.get("wait", True):
        raise CommandError("The worker could not go on, and stopped.")
