"""The base of every command that touches data.

    class Command(DataCommand):
        help = "…"

        def handle(self, *args: Any, **options: Any) -> None:
            self.say("reading …")                       # for the person watching
            self.answer({"sealed": 3}, "3 sessions sealed.")  # --json, or the text

It refuses to run on unapplied migrations, offers `--json`, and ends in one line and exit code 1 when the
operator or the database is at fault. Raise `CommandError` for what the operator can put right.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError

from mirix.checks import UnappliedMigrationsError, require_migrations

SIGPIPE_STATUS = 141


class MigrationsRequired(BaseCommand):
    """Mixin: Django only warns of unapplied migrations, this refuses; also for commands of other packages."""

    requires_migrations_checks = True

    def check_migrations(self) -> None:
        """Raise `CommandError` naming the missing migrations and the command to run."""
        try:
            require_migrations()
        except UnappliedMigrationsError as behind:
            raise CommandError(str(behind)) from behind

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; a database that is not there is one line, and a reader that left ends the command quietly."""
        try:
            output = super().execute(*args, **options)
            self.stdout.flush()
        except OperationalError as error:
            raise CommandError(f"The database does not answer: {_first_line(error)}") from error
        except BrokenPipeError:
            # Else the interpreter would try to flush the same pipe again at exit, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(SIGPIPE_STATUS)
        return output


class DataCommand(MigrationsRequired):
    """A command of ours; subclasses write `handle` and answer through `answer`."""

    as_json = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add `--json` to what the subclass asks for."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="Answer in JSON on standard output.")
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Remember how to answer, then run."""
        self.as_json = options.get("json", False)
        return super().execute(*args, **options)

    def answer(self, data: Mapping[str, Any] | Sequence[Any], text: str) -> None:
        """Write the command's result: `data` as one JSON document under `--json`, else `text`."""
        if self.as_json:
            self.stdout.write(json.dumps(data, cls=DjangoJSONEncoder, ensure_ascii=False))
        else:
            self.stdout.write(text)

    def say(self, text: str) -> None:
        """Tell the person who watches; under `--json` on standard error, to keep the answer parseable."""
        if self.as_json:
            self.stderr.write(text, self.style.NOTICE)
        else:
            self.stdout.write(text)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
