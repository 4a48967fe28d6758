"""`import_sessions`: recorded sessions from files or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from conversations.importing import ImportReport, import_lines
from mirix.commands import DataCommand
from mirix.tenants.commands import create_missing
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner

STDIN = "-"
REASONS_SHOWN = 10
PROBLEMS_SHOWN = 20


class Command(DataCommand):
    """Import sessions, one JSON object with `session_id` and `messages` a line.

    An imported session is complete and counts as sealed unless `--open`. Importing the same file again adds
    nothing; a session that has grown adds its tail. A broken line is reported, the rest goes on, and the exit
    code is 1.
    """

    help = "Import recorded sessions: JSON Lines, an object with session_id and messages in each."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add files and options."""
        parser.add_argument("files", nargs="*", default=[STDIN], metavar="FILE", help="- is standard input")
        parser.add_argument("--organization", required=True, metavar="NAME", help="made when missing")
        parser.add_argument("--user", required=True, metavar="USER_ID", help="end user; made when missing")
        parser.add_argument("--client", default="import", metavar="NAME", help="made when missing")
        parser.add_argument("--open", action="store_true", help="leave the sessions open: more will follow")
        parser.add_argument("--dry-run", action="store_true", help="report what would happen, write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import every file and report."""
        with ExitStack() as stack:
            sources = [(name, stack.enter_context(_opened(name))) for name in options["files"]]
            if options["dry_run"]:
                self.say("dry run: nothing of this is kept")
                stack.enter_context(_rolled_back())
            client, owner = create_missing(
                self,
                organization=options["organization"],
                client=options["client"],
                user_id=options["user"],
            )
            report = ImportReport()
            with self._progress(sources) as advance:
                for name, stream in sources:
                    for length in _imported(name, stream, client, owner, report, options["open"]):
                        advance(length)
        self.answer(
            report.as_dict() | {"dry_run": options["dry_run"], "user_id": options["user"]},
            self._text(report, is_dry_run=options["dry_run"]),
        )
        if report.problems:
            raise CommandError(f"{_number(len(report.problems), 'line')} could not be imported.")

    @contextmanager
    def _progress(self, sources: list[tuple[str, IO[bytes]]]) -> Iterator[Callable[[int], None]]:
        """Show a bar on a terminal; elsewhere nothing."""
        columns = (TextColumn("importing"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("importing", total=_total_size(sources))
            yield lambda length: progress.advance(task, length)

    def _text(self, report: ImportReport, *, is_dry_run: bool) -> str:
        did = "Would import" if is_dry_run else "Imported"
        unchanged = f" ({report.unchanged} unchanged)" if report.unchanged else ""
        sessions, turns = _number(report.sessions, "session"), _number(report.new_turns, "new turn")
        lines = [
            f"{did} {sessions}{unchanged}: {turns}",
            *_counted("turns", report.turns.most_common()),
            *_counted("skipped", report.skipped.most_common(REASONS_SHOWN)),
            *_counted("already stored", [("turns", report.duplicate)] if report.duplicate else []),
            *_counted("cut", [("turns longer than the limit", report.truncated)] if report.truncated else []),
            *(f"  renamed          {old} → {new_id}" for old, new_id in report.renamed.items()),
            *(f"  {p.source}, line {p.line}: {p.reason}" for p in report.problems[:PROBLEMS_SHOWN]),
        ]
        if len(report.problems) > PROBLEMS_SHOWN:
            lines.append(f"  … and {len(report.problems) - PROBLEMS_SHOWN} more broken lines")
        return "\n".join(lines)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _counted(title: str, counts: Iterable[tuple[str, int]]) -> list[str]:
    listing = ", ".join(f"{count} {what}" for what, count in counts)
    return [f"  {title:<16} {listing}"] if listing else []


def _imported(
    name: str, stream: IO[bytes], client: Client, owner: Owner, report: ImportReport, is_open: bool
) -> Iterator[int]:
    source = "standard input" if name == STDIN else name
    return import_lines(stream, source=source, client=client, owner=owner, report=report, is_open=is_open)


def _opened(name: str) -> AbstractContextManager[IO[bytes]]:
    if name == STDIN:
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from error


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Do everything and keep nothing: what a dry run reports is what really would happen."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _total_size(sources: list[tuple[str, IO[bytes]]]) -> int | None:
    if any(name == STDIN for name, _ in sources):
        return None
    return sum(os.fstat(stream.fileno()).st_size for _, stream in sources)
