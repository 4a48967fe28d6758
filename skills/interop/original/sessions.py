"""Turns of the original become sessions here, each with how far it was learned from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby

from django.db import transaction

from conversations.adoption import MAX_CONTENT_CHARS, PastTurn, adopt_session
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
    with transaction.atomic():
        for rows in sessions:
            _bring_session(rows, people, report)
    advance(sum(map(len, sessions)))
    yield


def _bring_session(rows: list[Row], people: People, report: TableReport) -> None:
    session_id = fitting_session_id(text(rows[0].get("session_id")))
    owners: dict[str, Owner] = {}
    turns: dict[str, dict[str, PastTurn]] = {}
    for row in rows:
        report.rows += 1
        try:
            place = people.place(row, client_id=row.get("_created_by_id"))
            role = _role(row)
        except Skip as reason:
            report.skipped[str(reason)] += 1
            continue
        owner = people.owner(place)
        owners[owner.end_user.pk] = owner
        found = turns.setdefault(owner.end_user.pk, {})
        message_id = fitting_id(row, "convmsg", MAX_MESSAGE_ID_CHARS)
        if message_id in found:  # a table without its key
            report.skipped[TWICE] += 1
            continue
        if place.client is None:
            report.notes["client unknown"] += 1
        found[message_id] = _turn(row, message_id, role, people.client(place), report.notes)
    if turns and session_id != rows[0].get("session_id"):
        report.notes["sessions whose id did not fit got another"] += 1
    for pk, found in turns.items():
        adopted = adopt_session(owner=owners[pk], session_id=session_id, turns=list(found.values()))
        report.imported += adopted.new
        report.unchanged += len(found) - adopted.new
        report.notes.update({"sessions": int(adopted.is_new)})
        if adopted.is_behind:
            report.notes["sessions that went on here before their past came"] += 1


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
