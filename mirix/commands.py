"""The base of every command that touches data.

    class Command(DataCommand):
        help = "…"

        def handle(self, *args: Any, **options: Any) -> None:
            self.say("reading …")                       # for the person watching
            self.answer({"sealed": 3}, "3 sessions sealed.")  # --json, or the text

It refuses to run on unapplied migrations and offers `--json`. Raise `CommandError` for what the operator can
put right: it ends as one line and exit code 1, and so does, by `manage.py`, a database that is out of reach.
Under `--json` standard output holds one JSON document in any case: the answer, or, of a command that fails
without one, `{"error": "…"}`.
"""

from __future__ import annotations

import json
import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError

from mirix.checks import UnappliedMigrationsError, require_migrations
from mirix.text import HIDDEN, shorten, visible, whole_number

MAX_LISTED = 10_000
MAX_SHOWN = 60


class MigrationsRequired(BaseCommand):
    """Mixin: Django only warns of unapplied migrations, this refuses; also for commands of other packages."""

    requires_migrations_checks = True

    def check_migrations(self) -> None:
        """Raise `CommandError` naming the missing migrations and the command to run."""
        try:
            require_migrations()
        except UnappliedMigrationsError as behind:
            raise CommandError(str(behind)) from behind


class DataCommand(MigrationsRequired):
    """A command of ours; subclasses write `handle` and answer through `answer`."""

    as_json = False
    _has_answered = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add `--json` to what the subclass asks for."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument("--json", action="store_true", help="Answer in JSON on standard output.")
        # Else argparse takes an optional argument for absent as soon as an option stands before it.
        parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Remember how to answer, then run; a failure is an answer too under `--json`."""
        self.as_json, self._has_answered = options.get("json", False), False
        try:
            return super().execute(*args, **options)
        except (CommandError, OperationalError) as error:
            if self.as_json and not self._has_answered:
                self.answer({"error": reason_of(error)}, "")
            if isinstance(error, CommandError):
                error.args = (visible(str(error)),)
            raise

    def answer(self, data: Mapping[str, Any] | Sequence[Any], text: str, *, is_styled: bool = False) -> None:
        """Write the command's result: `data` as one JSON document under `--json`, else `text`.

        Nothing that was stored commands the terminal: what cannot be seen is spelled out, as an escape in
        JSON. A text that `is_styled` holds colours, and has passed `visible` before it got them; so has every
        value that could hold a line end passed `visible_line`.
        """
        self._has_answered = True
        if self.as_json:
            document = json.dumps(data, cls=DjangoJSONEncoder, ensure_ascii=False)
            self.stdout.write(HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], document))
        else:
            self.stdout.write(text if is_styled else visible(text))

    def say(self, text: str) -> None:
        """Tell the person who watches; under `--json` on standard error, to keep the answer parseable."""
        if self.as_json:
            self.stderr.write(visible(text), self.style.NOTICE)
        else:
            self.stdout.write(visible(text))


def reason_of(error: CommandError | OperationalError) -> str:
    """Return why a command failed, in the words of standard error."""
    if isinstance(error, CommandError):
        return str(error)
    return f"Database error: {next(iter(str(error).splitlines()), type(error).__name__)}"


def number(*, above: float, high: float) -> Callable[[str], float]:
    """Return the `type` of an option that takes a number above `above`, at most `high`."""

    def parse(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if above < found <= high:  # nan is not
            return found
        raise ArgumentTypeError(
            f"{shorten(text, MAX_SHOWN)!r} is not a number above {above:g}, at most {high:g}"
        )

    return parse


def whole(*, low: int, high: int) -> Callable[[str], int]:
    """Return the `type` of an option that takes a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        number = whole_number(text, low=low, high=high)
        if number is None:
            raise ArgumentTypeError(
                f"{shorten(text, MAX_SHOWN)!r} is not a whole number from {low} to {high}"
            )
        return number

    return parse
