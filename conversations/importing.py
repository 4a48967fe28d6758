"""Importing recorded sessions: JSON Lines in, one session a line, every line accounted for."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.dateparse import parse_datetime

from conversations.envelope import is_session_id
from conversations.extraction.content import json_type
from conversations.intake import Accepted, import_session, reason_of
from conversations.models import IntakeState
from conversations.sealing import tell
from mirix import strict_json
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from mirix.text import clean_text, shorten

MAX_REASON_CHARS = 300
KEPT_ID_CHARS = 51
HASH_CHARS = 12
FIELDS: tuple[tuple[str, type, bool], ...] = (
    ("session_id", str, True),
    ("messages", list, True),
    ("session_tag", str, False),
    ("filter_tags", dict, False),
    ("occurred_at", str, False),
)


class BrokenRecord(Exception):
    """A line that holds no session, and why."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A line that could not be imported."""

    source: str
    line: int
    reason: str


@dataclass(kw_only=True)
class ImportReport:
    """What an import did. `turns` counts the new ones by role, `skipped` messages by reason."""

    sessions: int = 0
    unchanged: int = 0
    duplicate: int = 0
    truncated: int = 0
    turns: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)
    """Session ids that did not fit, and what they became."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def new_turns(self) -> int:
        """How many turns were stored."""
        return self.turns.total()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "sessions": self.sessions,
            "unchanged": self.unchanged,
            "new_turns": self.new_turns,
            "turns": dict(self.turns),
            "duplicate": self.duplicate,
            "truncated": self.truncated,
            "skipped": dict(self.skipped),
            "renamed": self.renamed,
            "problems": [vars(problem) for problem in self.problems],
        }


def import_lines(
    lines: Iterable[bytes],
    *,
    source: str,
    client: Client,
    owner: Owner,
    report: ImportReport,
    is_open: bool = False,
) -> Iterator[int]:
    """Import the sessions of one source, each in a transaction of its own; add to `report`.

    Yields the length of each line once it is dealt with, for progress. A line that cannot be imported is a
    problem in the report, and the next one follows. A run that was interrupted may simply be started again.
    Who waits for sealed sessions is told once, at the end.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                _import_line(line, client=client, owner=owner, report=report, is_open=is_open)
            except BrokenRecord as problem:
                report.problems.append(Problem(source=source, line=number, reason=str(problem)))
        yield len(line)
    if report.new_turns and not is_open:
        tell(owner)


def _import_line(line: bytes, *, client: Client, owner: Owner, report: ImportReport, is_open: bool) -> None:
    record = _parse(line)
    session_id = fitting_session_id(record["session_id"])
    try:
        accepted = import_session(
            client=client,
            owner=owner,
            session_id=session_id,
            messages=record["messages"],
            session_tag=record.get("session_tag") or "",
            filter_tags=record.get("filter_tags"),
            occurred_at=_moment(record.get("occurred_at")),
            is_open=is_open,
            quietly=True,
        )
    except ValidationError as error:
        faults = [f"{name}: {' '.join(problems)}" for name, problems in error.message_dict.items()]
        raise BrokenRecord("; ".join(faults)) from error
    row = accepted.record
    if row.state == IntakeState.FAILED:
        raise BrokenRecord(f"session {session_id}: {reason_of(record=row)}; kept as {row.pk}")
    if session_id != record["session_id"]:
        report.renamed[clean_text(record["session_id"])] = session_id
    _count(accepted, report)


def _parse(line: bytes) -> dict[str, Any]:
    """Return a line's record; raises `BrokenRecord` that says what was expected."""
    record = _decode(line)
    if not isinstance(record, dict):
        raise BrokenRecord(f"expected an object with session_id and messages, got {json_type(record)}")
    for name, kind, is_required in FIELDS:
        value = record.get(name)
        if name not in record and is_required:
            raise BrokenRecord(f"{name}: missing")
        if not isinstance(value, kind) and (is_required or value is not None):
            raise BrokenRecord(f"{name}: must be {json_type(kind())}, not {json_type(value)}")
    if not record["session_id"].strip():
        raise BrokenRecord("session_id: empty")
    return record


def _decode(line: bytes) -> Any:
    try:
        return strict_json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BrokenRecord(f"not UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise BrokenRecord("nested too deeply") from error
    except ValueError as error:
        raise BrokenRecord(f"not valid JSON: {shorten(str(error), MAX_REASON_CHARS)}") from error


def _moment(text: str | None) -> datetime | None:
    """Return when a record says it happened, in UTC, which is meant where no offset stands."""
    if text is None:
        return None
    try:
        if (moment := parse_datetime(text)) is not None:
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        pass  # the shape of a date, and no date: refused like any other text
    raise BrokenRecord(f"occurred_at: must be an ISO 8601 date and time, not {shorten(text, 64)!r}")


def fitting_session_id(raw: str) -> str:
    """Return a recorded session's id if it may be one, else a legible one made from it, always the same."""
    if is_session_id(raw):
        return raw
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", raw).strip("-")[:KEPT_ID_CHARS]
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_CHARS]
    return f"{kept}-{digest}" if kept else digest


def _count(accepted: Accepted, report: ImportReport) -> None:
    account, before = accepted.record.report or {}, accepted.before
    new = Counter(account.get("roles", {})) - Counter(before.get("roles", {}))
    report.sessions += 1
    report.unchanged += accepted.is_replay
    report.turns.update(new)
    report.duplicate += account.get("stored", 0) + account.get("duplicate", 0) - new.total()
    report.truncated += account.get("truncated", 0) - before.get("truncated", 0)
    report.skipped.update(item["reason"] for item in account.get("skipped", []))
