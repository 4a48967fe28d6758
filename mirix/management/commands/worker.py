"""`worker`: run the jobs that intake and dreams leave in the queue."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from mirix.management.commands.procrastinate import Command as Procrastinate


class Command(BaseCommand):
    """A short name for `procrastinate worker`, with all of its options and its refusals."""

    help = "Run queued jobs until stopped. The options are those of Procrastinate's worker."

    def run_from_argv(self, argv: list[str]) -> None:
        """Hand the command line on."""
        Procrastinate().run_from_argv([argv[0], "procrastinate", "worker", *argv[2:]])

    def handle(self, *args: Any, **options: Any) -> None:
        """Run a worker with Procrastinate's defaults."""
        call_command("procrastinate", "worker")
