"""Intake: accept a request's messages, account for them, and never lose them.

The row of the request is the primary write. Its turns are additive: stored within the same transaction, in a
savepoint (`wait`), or by the worker, through a job that is part of the same transaction. A failure to store
them is written down and never fails the request; `replay` stores them once the cause is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from conversations import statements
from conversations.envelope import Envelope, checked
from conversations.models import History, IntakeRecord, IntakeState, Session, SessionState
from conversations.sealing import close_session, seal_sessions
from conversations.selectors import find_session, overdue_intake
from conversations.storage import body_of, fail, is_transient, store_turns
from mirix.collisions import through_collisions
from mirix.queue import defer
from mirix.redaction import redact_json
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from mirix.text import shorten

STORE_TURNS = "conversations.store_turns"
QUEUE = "intake"
OVERDUE_BATCH = 500
MAX_REASON_CHARS = 100
NO_SESSION = "no session_id: nothing is learned from it"
EMPTY_REPORT: dict[str, Any] = {
    "stored": 0,
    "truncated": 0,
    "duplicate": 0,
    "skipped": [],
    "omitted": {},
    "roles": {},
}

logger = logging.getLogger(__name__)


class KeyReused(Exception):
    """An idempotency key came back with another body."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """An accepted request: its row, and what its caller is told."""

    record: IntakeRecord
    answer: dict[str, Any]
    is_replay: bool = False
    """True when the request had been accepted before, under the same idempotency key, and nothing is new."""
    before: dict[str, Any] = field(default_factory=dict)
    """Of a session that is imported again: what the account of its turns was until now."""


def accept(
    *, client: Client, owner: Owner, envelope: Envelope, wait: bool, idempotency_key: str = ""
) -> Accepted:
    """Accept a request; store its turns now (`wait`), or have the worker do it.

    A request that comes again under its idempotency key gets the first one's answer and writes nothing. Only
    where its turns were never stored and its body was pruned is it stored now, since here it is again.
    Raises `KeyReused` when the key belongs to another body: the one that came, whatever of it may be stored.
    """
    body_hash = envelope.body_hash(end_user_id=owner.end_user.pk) if idempotency_key else ""
    try:
        known = _known(client, idempotency_key, body_hash)
        if known is not None:
            return _brought_back(known, envelope.messages)
        request = (client, owner, envelope, body_hash, wait, idempotency_key)
        if wait:
            # All at once first: the savepoints that confine a failure to its step cost a third of the time.
            try:
                return _accept(*request, carefully=False)
            except Exception as error:  # noqa: BLE001  (a lasting one comes back below, and is written down)
                # By its kind alone: its words may quote what was sent.
                logger.warning(
                    "storing a request at once failed (%s); going step by step", type(error).__name__
                )
        return _accept(*request, carefully=True)
    except IntegrityError:
        # Another request with this key was accepted while this one was on its way.
        known = _known(client, idempotency_key, body_hash)
        if known is None:
            raise
        return known


def _known(client: Client, idempotency_key: str, body_hash: str) -> Accepted | None:
    if not idempotency_key:
        return None
    records = IntakeRecord.objects.with_organization_of(client)
    record = records.filter(client=client, idempotency_key=idempotency_key).first()
    if record is None:
        return None
    if record.body_hash != body_hash:
        raise KeyReused
    return Accepted(record=record, answer=record.answer or {}, is_replay=True)


def _brought_back(known: Accepted, messages: list[Any]) -> Accepted:
    """Store what a known request left behind when its body was pruned."""
    record = known.record
    if record.body_pruned_at is None or record.state == IntakeState.STORED:
        return known
    before = record.report or {}
    record.body, record.body_pruned_at = body_of(record, messages), None
    record.save(update_fields=["body", "body_pruned_at"])
    replay(record=record)
    return replace(known, before=before, is_replay=False)


@transaction.atomic
def _accept(
    client: Client,
    owner: Owner,
    envelope: Envelope,
    body_hash: str,
    wait: bool,
    idempotency_key: str,
    *,
    carefully: bool,
) -> Accepted:
    """Accept a request that is new.

    `carefully`, a failure to store its turns costs the turns alone, and one in what follows costs nothing;
    else any failure undoes everything and is raised.
    """
    record = IntakeRecord(
        organization=owner.organization,
        end_user=owner.end_user,
        client=client,
        session_id=envelope.session_id,
        session_tag=envelope.session_tag,
        filter_tags=envelope.filter_tags,
        history=envelope.history,
        occurred_at=envelope.occurred_at,
        body_hash=body_hash,
        message_count=len(envelope.messages),
        idempotency_key=idempotency_key,
    )
    session: Session | None = None
    if not envelope.session_id:
        _note_without_session(record)
    elif wait and not carefully:
        session = store_turns(record=record, messages=envelope.messages)
        if _is_first_of(session, record):
            seal_sessions(owner=owner, carefully=False)
    elif wait:
        session = _store_now(record, envelope.messages)
        _seal_older(owner, session, record)
    else:
        session = _store_later(record, envelope.messages)
    answer = answer_of(record=record, session=session, wait=wait)
    if idempotency_key:
        record.answer = answer
        record.save(update_fields=["answer"])
    return Accepted(record=record, answer=answer)


def _note_without_session(record: IntakeRecord) -> None:
    """Close the account of a request that belongs to no session: its messages are not kept."""
    record.state = IntakeState.STORED
    record.stored_at = timezone.now()
    record.report = EMPTY_REPORT | {
        "skipped": [{"index": index, "reason": NO_SESSION} for index in range(record.message_count)]
    }
    record.save(force_insert=True)


def _store_now(record: IntakeRecord, messages: list[Any]) -> Session | None:
    """Store within the request, the row of the request last: once, with its account.

    Whatever goes wrong costs the turns only. What may pass by itself leaves them to the worker; of anything
    else the row says what it was.
    """
    try:
        with transaction.atomic():
            return store_turns(record=record, messages=messages)
    except Exception as error:  # noqa: BLE001  (written down and logged by `fail`, or done again)
        record.report = record.stored_at = None
        record._state.adding = True  # whatever was written is undone
        if is_transient(error):
            return _store_later(record, messages)
        fail(record=record, messages=messages, error=error)
        return None


def _store_later(record: IntakeRecord, messages: list[Any]) -> Session | None:
    """Write the request alone, with a job to store its turns; return the session where there is one."""
    owner = Owner(organization=record.organization, end_user=record.end_user)
    session, redacts = statements.look_up(owner=owner, session_id=record.session_id)
    record.state = IntakeState.QUEUED
    record.body = {"messages": redact_json(messages) if redacts else messages}
    with statements.sent_together() as cursor:
        statements.insert(cursor, record)
    # By name: the task is a door to this module.
    defer(STORE_TURNS, queue=QUEUE, intake_id=record.pk)
    return session


def _seal_older(owner: Owner, session: Session | None, record: IntakeRecord) -> None:
    """Seal what a session that began with this request completes; if that fails, the worker does it later."""
    if not _is_first_of(session, record):
        return
    try:
        with transaction.atomic():
            seal_sessions(owner=owner)
    except DatabaseError:
        logger.exception("sealing the older sessions of %s failed", owner.end_user.pk)


def _is_first_of(session: Session | None, record: IntakeRecord) -> bool:
    return session is not None and session.first_turn_at == record.created_at


def store_queued(*, intake_id: str) -> IntakeRecord | None:
    """Store the turns of a request that waits; None when there is nothing to do any more.

    Raises only when the database is at fault: the request then still waits, and `store_overdue` comes back.
    """
    waiting = IntakeRecord.objects.filter(pk=intake_id, state=IntakeState.QUEUED)

    def store() -> IntakeRecord | None:
        record = waiting.select_related("organization", "end_user").first()
        try:
            return _store_again(record) if record else None
        except IntakeRecord.DoesNotExist:  # erased by whoever held the session
            return None

    return through_collisions(store)


def store_overdue(*, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Store requests whose job was lost or failed; return how many were dealt with."""
    done = 0
    for intake_id in overdue_intake().values_list("pk", flat=True)[:OVERDUE_BATCH]:
        if should_stop():
            break
        store_queued(intake_id=intake_id)
        done += 1
    return done


def replay(*, record: IntakeRecord) -> IntakeRecord:
    """Store what a failed or partly stored request left behind; return it with its new state.

    What was stored at first is not stored again. A request without a body has nothing to replay.
    """
    return _store_again(record) if record.body else record


@transaction.atomic
def _store_again(record: IntakeRecord) -> IntakeRecord:
    owner = Owner(organization=record.organization, end_user=record.end_user)
    session = store_turns(record=record)
    _seal_older(owner, session, record)
    return record


@transaction.atomic
def import_session(
    *,
    client: Client,
    owner: Owner,
    session_id: str,
    messages: list[Any],
    is_open: bool = False,
    session_tag: str = "",
    filter_tags: dict[str, Any] | None = None,
    occurred_at: datetime | None = None,
    quietly: bool = False,
) -> Accepted:
    """Store a whole session at once; it counts as sealed unless `is_open`.

    Importing the same record again stores nothing; a record that has grown adds its tail. A record that
    contradicts what is stored fails, and says so. `quietly` is `close_session`'s. Raises `ValidationError`
    as `checked` does.
    """
    envelope = checked(
        messages=messages,
        session_id=session_id,
        session_tag=session_tag,
        filter_tags=filter_tags,
        occurred_at=occurred_at,
        history=History.FULL,
    )
    key = f"import-{envelope.body_hash(end_user_id=owner.end_user.pk)}"
    accepted = accept(client=client, owner=owner, envelope=envelope, wait=True, idempotency_key=key)
    record = accepted.record
    if accepted.is_replay:
        before = record.report or {}
        if record.state != IntakeState.STORED:
            replay(record=record)
        accepted = replace(accepted, before=before, is_replay=record.report == before)
    session = find_session(owner=owner, session_id=session_id)
    is_last_word = session is not None and session.last_turn_at == record.created_at
    if session and is_last_word and session.state == SessionState.OPEN and not is_open:
        close_session(owner=owner, session_id=session_id, quietly=quietly)
    return accepted


def answer_of(*, record: IntakeRecord, session: Session | None, wait: bool) -> dict[str, Any]:
    """Return what the caller of `/memory/add_sync` (`wait`) or `/memory/add` is told."""
    return {
        "success": True,
        "message": _message(record),
        "status": "processed" if wait and record.state != IntakeState.QUEUED else "queued",
        "message_count": record.message_count,
        "intake_id": record.pk,
        "session": _session_answer(record, session),
        "turns": record.report,
    }


def _message(record: IntakeRecord) -> str:
    if not record.session_id:
        return "Accepted. Without session_id nothing is learned from it."
    match record.state:
        case IntakeState.QUEUED:
            return "Accepted. The turns are stored by the worker."
        case IntakeState.FAILED:
            return "Accepted. The turns could not be stored; the request is kept and can be replayed."
    stored = (record.report or {}).get("stored", 0)
    return f"Accepted. {stored} turn{'' if stored == 1 else 's'} stored."


def _session_answer(record: IntakeRecord, session: Session | None) -> dict[str, Any] | None:
    if not record.session_id:
        return None
    if record.state == IntakeState.FAILED:
        return {
            "session_id": record.session_id,
            "state": "missed",
            "reason": reason_of(record=record),
        }
    return {
        "session_id": record.session_id,
        "state": session.state if session else SessionState.OPEN.value,
        "turn_count": session.turn_count if session else 0,
    }


def reason_of(*, record: IntakeRecord) -> str:
    """Return why the turns of a request are not stored, for its caller; the details are for the operator."""
    kind, colon, _ = record.error.partition(": ")
    return f"storing the turns failed ({shorten(kind, MAX_REASON_CHARS)})" if colon else record.error
