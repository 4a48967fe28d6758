"""`import_mirix`: move over from a database of the original MIRIX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from skills.interop.original.report import ImportReport
from skills.interop.original.scopes import ChosenOtherwise, ScopesDiffer
from skills.interop.original.service import alone, import_original, rows_to_read
from skills.interop.original.source import SourceError, opened
from skills.management.import_text import report_text


class Command(DataCommand):
    """Import organizations, clients, users, skills, turns and experiences from a database of the original.

    The database is only read, in one snapshot, whatever its generation; it may be in use meanwhile. Importing
    again brings what is new there; an import that was interrupted is started again and does the rest.
    """

    help = "Move over from a database of the original MIRIX, of any generation; it is only read."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the source and what to do with scopes."""
        parser.add_argument("--from", required=True, dest="url", metavar="URL", help="postgresql://…")
        parser.add_argument("--dry-run", action="store_true", help="report what would happen, write nothing")
        scopes = parser.add_mutually_exclusive_group()
        scopes.add_argument(
            "--merge-scopes",
            action="store_const",
            const="merge",
            dest="choice",
            help="clients of one organization share it, whatever their scopes were",
        )
        scopes.add_argument(
            "--split-scopes",
            action="store_const",
            const="split",
            dest="choice",
            help="where they differ, each scope of an organization becomes one of its own",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, and report."""
        is_dry_run = options["dry_run"]
        try:
            with opened(options["url"]) as source, alone() as is_alone, ExitStack() as stack:
                if not is_alone:
                    raise CommandError("another import is running; wait until it has ended")
                if is_dry_run:
                    self.say("dry run: nothing of this is kept")
                report = ImportReport(database=source.name)
                advance = stack.enter_context(_progress(rows_to_read(source)))
                stack.enter_context(_rolled_back() if is_dry_run else nullcontext())
                for done in import_original(
                    source=source, choice=options["choice"], actor=Actor.operator(), report=report
                ):
                    advance(done)
        except (SourceError, ScopesDiffer, ChosenOtherwise) as error:
            raise CommandError(str(error)) from error
        self.answer(
            report.as_dict() | {"dry_run": is_dry_run},
            report_text(report, is_dry_run=is_dry_run),
        )


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal; elsewhere nothing."""
    columns = (TextColumn("importing"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("importing", total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Do everything and keep nothing: what a dry run reports is what really would happen."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
