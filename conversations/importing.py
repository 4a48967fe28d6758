"""Importing recorded sessions: each in a transaction of its own, every part of a source accounted for.

What a source holds is found out by `conversations.records`; here it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from django.core.exceptions import ValidationError
from django.utils.dateparse import parse_datetime

from conversations.intake import Accepted, import_session, reason_of
from conversations.models import IntakeState
from conversations.records import Fault, Reader, Record, fitting_session_id
from conversations.sealing import tell
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from mirix.text import clean_text, shorten

MAX_SESSION_BYTES = 100_000_000
MAX_LISTED = 1_000


class BrokenRecord(Exception):
    """A session that cannot be stored, and why."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What could not be imported; line 0 is the source as a whole."""

    source: str
    line: int
    reason: str


@dataclass(kw_only=True)
class ImportReport:
    """What an import did, of one source or of all. `turns` counts the new ones by role.

    `skipped` counts messages without a turn by reason, `omitted` texts left out of turns by kind.
    """

    sessions: int = 0
    unchanged: int = 0
    unnamed: int = 0
    """Sessions without an id, called after their file."""
    duplicate: int = 0
    truncated: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    omitted: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)
    """Session ids that did not fit, and what they became; at most `MAX_LISTED`."""
    problems: list[Problem] = field(default_factory=list)
    """At most `MAX_LISTED`; `problem_lines` and `problem_sources` count all."""
    problem_lines: int = 0
    problem_sources: int = 0

    @property
    def new_turns(self) -> int:
        """How many turns were stored."""
        return self.turns.total()

    def add_problem(self, problem: Problem) -> None:
        """Count a problem, and list it while there is room."""
        self.problem_lines += bool(problem.line)
        self.problem_sources += not problem.line
        if len(self.problems) < MAX_LISTED:
            self.problems.append(problem)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "sessions": self.sessions,
            "unchanged": self.unchanged,
            "unnamed": self.unnamed,
            "new_turns": self.new_turns,
            "turns": dict(self.turns),
            "duplicate": self.duplicate,
            "truncated": self.truncated,
            "skipped": dict(self.skipped),
            "omitted": dict(self.omitted),
            "renamed": self.renamed,
            "problems": [vars(problem) for problem in self.problems],
        }


@dataclass(kw_only=True)
class SourceReport(ImportReport):
    """What became of one file, or of standard input."""

    source: str
    taken_for: str = ""
    """How its content was read, in words."""

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {"source": self.source, "taken_for": self.taken_for} | super().as_dict()


def total_of(sources: list[SourceReport]) -> ImportReport:
    """Return the sum of what was done with several sources."""
    total = ImportReport()
    for report in sources:
        for name in ("sessions", "unchanged", "unnamed", "duplicate", "truncated"):
            setattr(total, name, getattr(total, name) + getattr(report, name))
        for name in ("turns", "skipped", "omitted"):
            getattr(total, name).update(getattr(report, name))
        total.renamed |= report.renamed
        total.problems = (total.problems + report.problems)[:MAX_LISTED]
        total.problem_lines += report.problem_lines
        total.problem_sources += report.problem_sources
    return total


def name_of(path: Path) -> str:
    """Return what sessions without an id in a file are called after: its name and its folder's.

    So they are the same however the file is reached, and files of one name in several folders do not meet.
    """
    return "/".join(path.resolve().parts[-2:])


def import_source(
    stream: IO[bytes],
    *,
    report: SourceReport,
    client: Client,
    owner: Owner,
    name: str = "",
    is_open: bool = False,
    max_bytes: int = MAX_SESSION_BYTES,
) -> Iterator[None]:
    """Import the sessions of one source, each in a transaction of its own; write down in `report`.

    Yields after each, for progress. What cannot be imported is a problem in the report, and the next follows.
    A run that was interrupted may simply be started again. `name` is what sessions without an id are called
    after. Who waits for sealed sessions is told once, at the end.
    """
    reader = Reader(stream, name=name, limit=max_bytes)
    for found in reader:
        if isinstance(found, Record):
            try:
                _import(found, client=client, owner=owner, report=report, is_open=is_open)
            except BrokenRecord as problem:
                found = Fault(line=found.line, reason=str(problem))
        if isinstance(found, Fault):
            report.add_problem(Problem(source=report.source, line=found.line, reason=found.reason))
        yield
    report.taken_for = reader.taken_for
    if report.new_turns and not is_open:
        tell(owner)


def _import(record: Record, *, client: Client, owner: Owner, report: SourceReport, is_open: bool) -> None:
    session_id = fitting_session_id(record.session_id)
    try:
        accepted = import_session(
            client=client,
            owner=owner,
            session_id=session_id,
            messages=record.messages,
            session_tag=record.session_tag,
            filter_tags=record.filter_tags,
            occurred_at=_moment(record),
            is_open=is_open,
            quietly=True,
        )
    except ValidationError as error:
        faults = [f"{name}: {' '.join(problems)}" for name, problems in error.message_dict.items()]
        raise BrokenRecord("; ".join(faults)) from error
    row = accepted.record
    if row.state == IntakeState.FAILED:
        raise BrokenRecord(f"session {session_id}: {reason_of(record=row)}; kept as {row.pk}")
    report.unnamed += record.is_unnamed
    if session_id != record.session_id and len(report.renamed) < MAX_LISTED:
        report.renamed[clean_text(record.session_id)] = session_id
    _count(accepted, report)


def _moment(record: Record) -> datetime | None:
    """Return when a record says it happened, in UTC, which is meant where no offset stands."""
    if not record.occurred_at:
        return None
    try:
        if (moment := parse_datetime(record.occurred_at)) is not None:
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass  # the shape of a date, and no date: like any other text
    if record.is_dated_loosely:
        return None
    raise BrokenRecord(
        f"occurred_at: must be an ISO 8601 date and time, not {shorten(record.occurred_at, 64)!r}"
    )


def _count(accepted: Accepted, report: SourceReport) -> None:
    account, before = accepted.record.report or {}, accepted.before
    new = Counter(account.get("roles", {})) - Counter(before.get("roles", {}))
    report.sessions += 1
    report.unchanged += accepted.is_replay
    report.turns.update(new)
    report.duplicate += account.get("stored", 0) + account.get("duplicate", 0) - new.total()
    report.truncated += account.get("truncated", 0) - before.get("truncated", 0)
    report.skipped.update(item["reason"] for item in account.get("skipped", []))
    report.omitted.update(account.get("omitted", {}))
