"""Turns of the original become sessions here, each with how far it was learned from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from django.db import transaction

from conversations.adoption import MAX_CONTENT_CHARS, PastSession, PastTurn, adopt_sessions
from conversations.models import TurnRole
from conversations.records.sessions import fitting_session_id
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from skills.interop.original.people import TWICE, People, Skip
from skills.interop.original.report import TableReport
from skills.interop.original.source import BATCH, Source
from skills.interop.original.values import Row, fitting_id, moment, text

TABLE = "conversation_message"
COLUMNS = (
    *("id", "organization_id", "user_id", "session_id", "role", "content", "created_at", "is_deleted"),
    *("distilled_at", "_created_by_id"),
)
ORDER = ("organization_id", "user_id", "session_id", "created_at", "id")
TOOL = re.compile(r"\[([^\]\n]{1,256})\]")
PARTS = re.compile(r"\{'type': '")
ONLY_CALLS = "None"
MAX_MESSAGE_ID_CHARS = 256


def generation_of(source: Source) -> str:
    """Return which generation the turns are, as far as it can be told."""
    return "G6" if source.holds(TABLE, "role", TurnRole.TOOL) else "G5 or G6"


def import_turns(
    source: Source, people: People, report: TableReport, advance: Callable[[int], None]
) -> Iterator[None]:
    """Bring the turns, whole sessions in one transaction, and yield between them."""
    rows = source.rows(TABLE, COLUMNS, order=ORDER)
    waiting: list[list[Row]] = []
    for _, group in groupby(rows, key=lambda row: [row.get(name) for name in ORDER[:3]]):
        waiting.append(list(group))
        if sum(map(len, waiting)) >= BATCH:
            yield from _bring(waiting, people, report, advance)
            waiting = []
    yield from _bring(waiting, people, report, advance)


def _bring(
    sessions: list[list[Row]], people: People, report: TableReport, advance: Callable[[int], None]
) -> Iterator[None]:
    found: dict[tuple[str, str], _Found] = {}
    for rows in sessions:
        _collect(rows, people, report, found)
    past = [
        PastSession(owner=one.owner, session_id=session_id, turns=list(one.turns.values()))
        for (_, session_id), one in found.items()
    ]
    with transaction.atomic():
        adopted = adopt_sessions(sessions=past)
    for session, one in zip(past, adopted, strict=True):
        report.imported += one.new
        report.unchanged += len(session.turns) - one.new
        report.notes["sessions"] += one.is_new
        report.notes["sessions that went on here before their past came"] += one.is_behind
    advance(sum(map(len, sessions)))
    yield


@dataclass(kw_only=True)
class _Found:
    """A session as far as it was read, its turns by their ids."""

    owner: Owner
    turns: dict[str, PastTurn] = field(default_factory=dict)


def _collect(
    rows: list[Row], people: People, report: TableReport, found: dict[tuple[str, str], _Found]
) -> None:
    """Add a session's turns to those that were found; users that are one here may share it."""
    session_id = fitting_session_id(text(rows[0].get("session_id")))
    is_found = False
    for row in rows:
        report.rows += 1
        try:
            place = people.place(row, client_id=row.get("_created_by_id"))
            role = _role(row)
        except Skip as reason:
            report.skipped[str(reason)] += 1
            continue
        is_found = True
        owner = people.owner(place)
        session = found.setdefault((owner.end_user.pk, session_id), _Found(owner=owner))
        message_id = fitting_id(row, "convmsg", MAX_MESSAGE_ID_CHARS)
        if message_id in session.turns:  # a table without its key
            report.skipped[TWICE] += 1
            continue
        if place.client is None:
            report.notes["client unknown"] += 1
        session.turns[message_id] = _turn(row, message_id, role, people.client(place), report.notes)
    if is_found and session_id != rows[0].get("session_id"):
        report.notes["sessions whose id did not fit got another"] += 1


def _role(row: Row) -> str:
    role = (row.get("role") or "").strip().lower()
    if role not in TurnRole.values:
        raise Skip(f"role {text(row.get('role'))[:32] or '“”'}")
    return role


def _turn(row: Row, message_id: str, role: str, client: Client, notes: Counter[str]) -> PastTurn:
    content = text(row.get("content"))
    if role == TurnRole.ASSISTANT and content == ONLY_CALLS:
        notes["turns that only called tools: which ones was never stored"] += 1
    elif PARTS.match(content):
        notes["turns that are the text of Python values, kept as they are"] += 1
    if len(content) > MAX_CONTENT_CHARS:
        notes["content cut at the limit"] += 1
    named = TOOL.match(content) if role == TurnRole.TOOL else None
    return PastTurn(
        message_id=message_id,
        role=role,
        content=content,
        occurred_at=moment(row.get("created_at")),
        is_distilled=row.get("distilled_at") is not None,
        client=client,
        tool_name=named.group(1) if named else "",
    )
