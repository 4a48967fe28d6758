"""What every request that stores turns asks of the database, in SQL, which Django would build anew each time.

The texts hold names of models and columns, and are made once; values are always parameters. Each statement is
about rows of one organization, and looks first whether the request may see it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.utils import timezone

from conversations.models import ConversationMessage, IntakeRecord, IntakeState, Session, SessionState
from mirix.prepared import prepared_cursor
from mirix.tenants import scope
from mirix.tenants.models import OrganizationSettings
from mirix.tenants.owners import Owner

OF_REQUEST = {
    "organization_id": "text",
    "end_user_id": "text",
    "created_at": "timestamptz",
    "client_id": "text",
    "session_id": "text",
    "intake_id": "text",
    "occurred_at": "timestamptz",
}
"""The columns in which the turns of a request are alike, with their types."""
OF_TURN = {
    "seq": "integer",
    "role": "text",
    "content": "text",
    "content_hash": "text",
    "tool_calls": "jsonb",
    "tool_name": "text",
    "tool_call_id": "text",
    "is_error": "boolean",
    "truncated": "boolean",
    "message_id": "text",
    "part": "integer",
}
"""The columns that each turn has of its own, with their types."""
TURNS_AT_ONCE = 500
"""How many turns are sent in one statement, so that a long request is not held in memory several times."""

INSERT_TURNS = f"""
INSERT INTO "{ConversationMessage._meta.db_table}" ({", ".join([*OF_REQUEST, *OF_TURN])})
SELECT {", ".join(f"%s::{kind}" for kind in OF_REQUEST.values())}, {", ".join(OF_TURN)}
FROM json_to_recordset(%s::json) AS turn ({", ".join(f"{name} {kind}" for name, kind in OF_TURN.items())})
"""  # noqa: S608  (names of the model)

REDACTS = f"""COALESCE((
    SELECT chosen.redact_on_intake FROM "{OrganizationSettings._meta.db_table}" AS chosen
    WHERE chosen.organization_id = {{organization}}
), %s::boolean)"""  # noqa: S608  (names of the model)
"""What an organization chose, else the installation, whose choice is the parameter."""

SEAL = f"""
WITH due AS MATERIALIZED (
    SELECT known.id FROM "{Session._meta.db_table}" AS known
    WHERE known.state = '{SessionState.OPEN}' AND {{whose}}
    AND (known.last_turn_at < %(idle_since)s OR EXISTS (
        SELECT FROM "{Session._meta.db_table}" AS newer
        WHERE newer.end_user_id = known.end_user_id AND newer.first_turn_at > known.last_turn_at
    ))
    ORDER BY known.id LIMIT %(limit)s
    FOR NO KEY UPDATE OF known SKIP LOCKED
)
UPDATE "{Session._meta.db_table}" AS known SET state = '{SessionState.SEALED}', sealed_at = %(now)s
FROM due WHERE known.id = due.id
RETURNING known.end_user_id, known.tag
"""  # noqa: S608  (names of the model)
"""The rule is that of `selectors.sealable`. What is due is locked, then sealed."""
OF_OWNER = "known.organization_id = %(organization)s AND known.end_user_id = %(end_user)s"


@contextmanager
def sent_together() -> Iterator[CursorWrapper]:
    """Yield a cursor whose statements are sent without waiting for the answer to each.

    At the end of the block all are through, and the answer to the last can be read; or the first that failed
    raises its error.
    """
    cursor = prepared_cursor()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield cursor


def lock_session(new: Session) -> tuple[Session, bool, bool]:
    """Insert a session, or lock the one that is there; return it.

    Also whether requests wait for it, and whether its organization wants no secrets to be stored. Where two
    make it at once, the second waits for the first.
    """
    scope.require(new.organization_id)
    with sent_together() as cursor:  # with the BEGIN before it
        cursor.execute(_lock_text(), [*_values(new, _fields(Session)), settings.MIRIX_REDACT_ON_INTAKE])
    *values, has_waiting, redacts = cursor.fetchone()
    return _loaded(values), has_waiting, redacts


def look_up(*, owner: Owner, session_id: str) -> tuple[Session | None, bool]:
    """Return an owner's session, if there is one, and what `redacts` does, at the price of one of them."""
    scope.require(owner.organization.pk)
    with sent_together() as cursor:  # with the BEGIN before it
        whose = [owner.organization.pk, owner.end_user.pk, session_id]
        cursor.execute(_look_up_text(), [owner.organization.pk, settings.MIRIX_REDACT_ON_INTAKE, *whose])
    redacts, *values = cursor.fetchone()
    return (_loaded(values) if values[0] is not None else None), redacts


def redacts(*, organization_id: str) -> bool:
    """Return whether an organization wants no secrets to be stored; `mirix.tenants.selectors.effective`."""
    scope.require(organization_id)
    with prepared_cursor() as cursor:
        cursor.execute(_redacts_text(), [organization_id, settings.MIRIX_REDACT_ON_INTAKE])
        (found,) = cursor.fetchone()
    return bool(found)


def insert_turns(
    cursor: CursorWrapper, turns: Sequence[dict[str, Any]], *, record: IntakeRecord, session: Session
) -> None:
    """Insert the turns of a request, each by its own columns."""
    scope.require(record.organization_id)
    alike = (
        *(record.organization_id, record.end_user_id, timezone.now()),
        *(record.client_id, session.pk, record.pk, record.occurred_at),
    )
    for start in range(0, len(turns), TURNS_AT_ONCE):
        part = json.dumps(turns[start : start + TURNS_AT_ONCE], ensure_ascii=False)
        cursor.execute(INSERT_TURNS, [*alike, part])


def insert(cursor: CursorWrapper, row: IntakeRecord) -> None:
    """Insert a new row, as `save` would."""
    scope.require(row.organization_id)
    cursor.execute(_insert_text(type(row)), _values(row, _fields(type(row))))
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def update(cursor: CursorWrapper, row: IntakeRecord | Session, names: tuple[str, ...]) -> None:
    """Write fields of a row, as `save` would."""
    scope.require(row.organization_id)
    cursor.execute(_update_text(type(row), names), [*_values(row, _fields(type(row), names)), row.pk])


def seal(
    *, owner: Owner | None, now: datetime, idle_since: datetime | None, limit: int
) -> list[tuple[str, str]]:
    """Seal what is complete of one owner or, outside of requests, of all; return end user and tag of each."""
    values: dict[str, Any] = {"now": now, "idle_since": idle_since, "limit": limit}
    if owner is not None:
        scope.require(owner.organization.pk)
        values |= {"organization": owner.organization.pk, "end_user": owner.end_user.pk}
    elif scope.is_in_request():
        raise scope.UnscopedQuery("Sealing the sessions of all owners inside a request.")
    with prepared_cursor() as cursor:
        cursor.execute(SEAL.format(whose=OF_OWNER if owner else "TRUE"), values)
        return cursor.fetchall()


@cache
def _insert_text(model: type[Model]) -> str:
    columns = [field.column for field in _fields(model)]
    values = ", ".join(["%s"] * len(columns))
    table = f'"{model._meta.db_table}" AS known'
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608  (names of the model)


@cache
def _lock_text() -> str:
    columns = ", ".join(f"known.{field.column}" for field in _fields(Session))
    return f"""
        {_insert_text(Session)}
        ON CONFLICT (organization_id, end_user_id, session_id) DO UPDATE SET turn_count = known.turn_count
        RETURNING {columns}, EXISTS (
            SELECT FROM "{IntakeRecord._meta.db_table}" AS intake
            WHERE intake.organization_id = known.organization_id AND intake.end_user_id = known.end_user_id
            AND intake.session_id = known.session_id AND intake.state = '{IntakeState.QUEUED}'
        ), {REDACTS.format(organization="known.organization_id")}
    """


@cache
def _look_up_text() -> str:
    columns = ", ".join(f"known.{field.column}" for field in _fields(Session))
    return f"""
        SELECT {REDACTS.format(organization="%s::text")}, {columns}
        FROM (SELECT) AS nothing LEFT JOIN "{Session._meta.db_table}" AS known
        ON known.organization_id = %s AND known.end_user_id = %s AND known.session_id = %s
    """  # noqa: S608  (names of the model)


@cache
def _redacts_text() -> str:
    return f"SELECT {REDACTS.format(organization='%s::text')}"


@cache
def _update_text(model: type[Model], names: tuple[str, ...]) -> str:
    changes = ", ".join(f"{field.column} = %s" for field in _fields(model, names))
    return f'UPDATE "{model._meta.db_table}" SET {changes} WHERE id = %s'  # noqa: S608  (names of the model)


@cache
def _fields(model: type[Model], names: tuple[str, ...] = ()) -> list[Any]:
    return [field for field in model._meta.concrete_fields if not names or field.name in names]


def _values(row: Model, fields: list[Any]) -> list[Any]:
    """Return what stands in fields of a row, as the database takes it."""
    adding = row._state.adding
    return [field.get_db_prep_save(field.pre_save(row, add=adding), connection) for field in fields]


def _loaded(values: Sequence[Any]) -> Session:
    """Return the session whose row was read."""
    fields = _fields(Session)
    read = [_converted(field, value) for field, value in zip(fields, values, strict=True)]
    return Session.from_db(DEFAULT_DB_ALIAS, [field.attname for field in fields], read)


def _converted(field: Any, value: Any) -> Any:
    for convert in field.get_db_converters(connection):
        value = convert(value, None, connection)
    return value
