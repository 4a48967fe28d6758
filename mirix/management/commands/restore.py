"""`restore`: what a backup holds in the place of what the database holds."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management.base import CommandError
from django.db import connection

from mirix.checks import unapplied_migrations
from mirix.commands import DataCommand
from mirix.dumps import DumpFailed, is_empty, require_alone, require_restorable, restore
from mirix.redis import forget_everything


class Command(DataCommand):
    """See `mirix.dumps`."""

    help = "Read a file of `backup` into the database, as a whole or not at all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add what to read, and whether it may take the place of something."""
        parser.add_argument("file")
        parser.add_argument(
            "--replace", action="store_true", help="replace what the database holds, which is lost then"
        )
        parser.add_argument("--no-input", action="store_true", help="do not ask before replacing it")

    def check_migrations(self) -> None:
        """Do without: a restore comes before migrations."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore, and say what is to be done next."""
        began = monotonic()
        path = Path(options["file"]).absolute()
        try:
            require_restorable(path)
            if not is_empty():
                self._ask(replace=options["replace"], asks=not options["no_input"])
            require_alone()
            restore(path=path)
        except DumpFailed as error:
            raise CommandError(str(error)) from error
        is_cache_empty = forget_everything()
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        missing = unapplied_migrations()
        self.answer(
            {
                "file": str(path),
                "seconds": round(monotonic() - began, 3),
                "unapplied_migrations": missing,
                "cache_emptied": is_cache_empty,
            },
            "\n".join(filter(None, [f"Restored {path}.", _next(missing), _cache(is_cache_empty), ERASED])),
        )

    def _ask(self, *, replace: bool, asks: bool) -> None:
        name = connection.settings_dict["NAME"]
        if not replace:
            raise CommandError(f"The database {name} is not empty. --replace gives up what it holds.")
        if not asks:
            return
        if not sys.stdin.isatty():
            raise CommandError("Nobody is there to be asked: say --no-input.")
        self.say(f"Everything in the database {name} will be lost. Type its name to go on:")
        if sys.stdin.readline().strip() != name:
            raise CommandError("Nothing was changed.")


ERASED = "What was erased after this backup was made is back: erase it again before you serve."


def _next(missing: list[str]) -> str:
    return f"Run ./run migrate: migrations that the backup lacks: {len(missing)}." if missing else ""


def _cache(is_empty: bool) -> str:
    return "" if is_empty else "Redis is out of reach: empty it before you serve (keys mirix:*)."
