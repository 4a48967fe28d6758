"""`import_sessions`: recorded sessions from files, folders or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from conversations.importing import MAX_SESSION_BYTES, Problem, SourceReport, import_source, name_of, total_of
from conversations.management.import_text import could_not, report_text
from conversations.records import KNOWN_SUFFIXES, files_in
from mirix.commands import DataCommand, number
from mirix.tenants.commands import create_missing

STDIN = "-"
MEGABYTE = 1_000_000
MOST_MEGABYTES = 10_000


class Command(DataCommand):
    """Import recorded sessions from files, folders or standard input.

    JSON and JSON Lines of any layout, logs of coding agents and recorded runs are told apart by content. An
    imported session is complete and counts as sealed unless `--open`. Importing the same again adds nothing;
    a session that has grown adds its tail; an interrupted import is started again and does the rest. What
    cannot be imported is reported, the rest goes on, and the exit code is 1.
    """

    help = (
        "Import recorded sessions: JSON, JSON Lines, logs of coding agents, recorded runs; files or folders."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add paths and options."""
        parser.add_argument(
            "paths", nargs="*", default=[STDIN], metavar="PATH", help="file or folder; - is standard input"
        )
        parser.add_argument("--organization", required=True, metavar="NAME", help="made when missing")
        parser.add_argument("--user", required=True, metavar="USER_ID", help="end user; made when missing")
        parser.add_argument("--client", default="import", metavar="NAME", help="made when missing")
        parser.add_argument("--open", action="store_true", help="leave the sessions open: more will follow")
        parser.add_argument("--dry-run", action="store_true", help="report what would happen, write nothing")
        parser.add_argument(
            "--max-megabytes",
            type=number(above=0, high=MOST_MEGABYTES),
            default=MAX_SESSION_BYTES / MEGABYTE,
            metavar="N",
            help="refuse a session that is larger (%(default)g)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import every file and report."""
        paths = [path for name in options["paths"] for path in _files(name)]
        with ExitStack() as stack:
            if options["dry_run"]:
                self.say("dry run: nothing of this is kept")
                stack.enter_context(_rolled_back())
            client, owner = create_missing(
                self, organization=options["organization"], client=options["client"], user_id=options["user"]
            )
            advance = stack.enter_context(_progress(paths))
            reports = []
            for path in paths:
                report = SourceReport(source=str(path) if path else "standard input")
                reports.append(report)
                _import(path, report, advance, client=client, owner=owner, options=options)
        total = total_of(reports)
        self.answer(
            total.as_dict()
            | {"files": [report.as_dict() for report in reports]}
            | {"dry_run": options["dry_run"], "user_id": options["user"]},
            report_text(total, reports, is_dry_run=options["dry_run"]),
        )
        if total.problems:
            raise CommandError(could_not(total))


def _import(
    path: Path | None,
    report: SourceReport,
    advance: Callable[[int], None],
    *,
    options: dict[str, Any],
    **whose: Any,
) -> None:
    """Import one file; one that cannot be opened is a problem like any other."""
    with ExitStack() as stack:
        try:
            stream: IO[bytes] = stack.enter_context(path.open("rb")) if path else sys.stdin.buffer
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            report.add_problem(Problem(source=report.source, line=0, reason=reason))
            return
        done, is_file = 0, path is not None and path.is_file()
        for _ in import_source(
            stream,
            report=report,
            name=name_of(path) if path and is_file else "",
            is_open=options["open"],
            max_bytes=int(options["max_megabytes"] * MEGABYTE),
            **whose,
        ):
            if is_file:
                advance(stream.tell() - done)
                done = stream.tell()
        if is_file:
            advance(os.fstat(stream.fileno()).st_size - done)


def _files(name: str) -> list[Path | None]:
    """Return the files that an argument names; None is standard input."""
    if name == STDIN:
        return [None]
    path = Path(name)
    try:
        path.stat()
        if not path.is_dir():
            return [path]
        found: list[Path | None] = list(files_in(path))
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}") from error
    if not found:
        suffixes = ", ".join(KNOWN_SUFFIXES)
        raise CommandError(f"nothing to import in {name}: no file ends with {suffixes} (or .gz after it)")
    return found


@contextmanager
def _progress(paths: list[Path | None]) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal; elsewhere nothing."""
    columns = (TextColumn("importing"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("importing", total=_total_size(paths))
        yield lambda length: progress.advance(task, length)


def _total_size(paths: list[Path | None]) -> int | None:
    """Return the bytes of all files; None where something comes whose end nobody knows."""
    files = [path for path in paths if path and path.is_file()]
    return sum(path.stat().st_size for path in files) if len(files) == len(paths) else None


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Do everything and keep nothing: what a dry run reports is what really would happen."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
