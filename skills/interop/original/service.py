"""The import as a whole: who is who, then what they know, then what was said and learned.

Each batch is a transaction. Everything gets an id made of what names it in the original, so an import that
was killed is simply started again, and one that is done twice brings nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection

from mirix.tenants.audit import Actor
from skills.interop.original import experiences, memories, sessions
from skills.interop.original.people import People
from skills.interop.original.report import ImportReport, LeftBehind, TableReport
from skills.interop.original.scopes import Choice, Scopes
from skills.interop.original.skills import import_memories
from skills.interop.original.source import Source

LOCK = 0x6D69726979  # one import at a time, whatever it reads: "mirix", and one more
MERGED_SESSIONS = "roles are merged in them, so that their sessions cannot be recovered"
REASONS = {
    "messages": MERGED_SESSIONS,
    "agents": "internals of the original",
    "agent_trigger_state": "where its scheduler stood",
    "client_api_keys": "only hashes are stored: make new keys with create_api_key",
    "skill_evolution_record": "records of its evaluation",
}
WITHOUT_IDS = "its rows have no column “id”, so that none of them could be known again"
OTHER = "another kind of memory, or internals"
IMPORTED = {"organizations", "users", "clients", *memories.TABLES, sessions.TABLE, experiences.TABLE}


@contextmanager
def alone() -> Iterator[bool]:
    """Hold off other imports; the value is whether there is none. A connection of its own holds the lock."""
    holder = connection.copy()
    try:
        with holder.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
            (is_alone,) = cursor.fetchone()
            yield is_alone
    finally:
        holder.close()


def rows_to_read(source: Source) -> int:
    """Return how many rows an import looks at, for its progress."""
    return sum(source.count(table) for table in IMPORTED if source.has(table, "id"))


def import_original(
    *, source: Source, choice: Choice | None, actor: Actor, report: ImportReport
) -> Iterator[int]:
    """Import everything that can be, and account for it in `report`; yields how many rows each step did.

    Raises `ScopesDiffer` and `ChosenOtherwise` before anything is written.
    """
    people = People(source=source, actor=actor, scopes=Scopes(choice=choice))
    people.read()
    names = {known.id: known.name or known.id for known in people.organizations.values()}
    people.scopes.decide(people.read_scopes(), names, people.read_past())
    try:
        organizations = _table(report, source, "organizations")
        yield from _organizations(people, organizations)
        yield from _counted(people.bring_users, _table(report, source, "users"))
        if people.clients:
            yield from _clients(people, _table(report, source, "clients"))
        found = {table: _table(report, source, table) for table in memories.TABLES if source.has(table, "id")}
        yield from _stepped(lambda advance: import_memories(source, people, found, advance))
        if source.has(sessions.TABLE, "id"):
            turns = _table(report, source, sessions.TABLE)
            yield from _stepped(lambda advance: sessions.import_turns(source, people, turns, advance))
        if source.has(experiences.TABLE, "id"):
            lessons = _table(report, source, experiences.TABLE)
            yield from _stepped(
                lambda advance: experiences.import_experiences(source, people, lessons, advance)
            )
        _count_split(people, organizations)
        report.left_behind += _left_behind(source)
    finally:
        report.organizations = list(people.moved.values())


def _table(report: ImportReport, source: Source, table: str) -> TableReport:
    columns, clients = source.tables[table], source.tables.get("clients", {})
    if table in memories.TABLES:
        generation = memories.generation_of(table, columns, clients)
    elif table == sessions.TABLE:
        generation = sessions.generation_of(source)
    elif table == experiences.TABLE:
        generation = experiences.generation_of(source)
    else:
        generation = ""
    made = TableReport(table=table, generation=generation)
    report.tables.append(made)
    return made


def _organizations(people: People, report: TableReport) -> Iterator[int]:
    for known in people.organizations.values():
        report.rows += 1
        if known.is_erased:
            report.skipped["erased"] += 1
        elif people.scopes.is_split(known.id):
            report.notes["split by the scopes of its clients"] += 1
        else:
            people.organization(known, None)
            if known.id in people.scopes.kept_whole:
                report.notes["not split: they came whole, when their clients had one scope"] += 1
            is_new = people.moved[known.id, None].is_new
            report.imported += is_new
            report.unchanged += not is_new
            if is_new and people.moved[known.id, None].name != known.name:
                report.notes["name changed to one that is usable and free"] += 1
    yield report.rows


def _count_split(people: People, report: TableReport) -> None:
    """Count the organizations that were split; their parts are made as their rows come."""
    for known in people.organizations.values():
        if not known.is_erased and people.scopes.is_split(known.id):
            parts = [part for part in people.moved.values() if part.original_id == known.id]
            is_new = any(part.is_new for part in parts)
            report.imported += is_new
            report.unchanged += not is_new


def _clients(people: People, report: TableReport) -> Iterator[int]:
    for known in people.clients.values():
        report.rows += 1
        if reason := people.reason_against(known.id):
            report.skipped[reason] += 1
            continue
        _, is_new = people.client_of(known)
        report.imported += is_new
        report.unchanged += not is_new
    report.notes["without their keys"] += report.imported
    yield report.rows


def _left_behind(source: Source) -> list[LeftBehind]:
    found = []
    imported = {table for table in IMPORTED if source.has(table, "id")}
    for table in sorted(source.tables.keys() - imported):
        rows = source.count(table)
        reason = WITHOUT_IDS if table in IMPORTED else REASONS.get(table, OTHER)
        if table == "messages" and source.has(table, "session_id"):
            reason = f"{source.count_distinct(table, 'session_id')} sessions: {MERGED_SESSIONS}"
        if rows or table in REASONS or table in IMPORTED:
            found.append(LeftBehind(table=table, rows=rows, reason=reason))
    return found


def _stepped(start: Callable[[Callable[[int], None]], Iterator[None]]) -> Iterator[int]:
    """Run a part of the import, and yield how many rows each step of it did."""
    done: list[int] = []
    for _ in start(done.append):
        yield sum(done)
        done.clear()


def _counted(
    start: Callable[[TableReport, Callable[[int], None]], Iterator[None]], report: TableReport
) -> Iterator[int]:
    return _stepped(lambda advance: start(report, advance))
