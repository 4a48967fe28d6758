"""Storing the turns of accepted requests: each exactly once, in the order of their acceptance.

The row of the session is the lock: whoever stores turns holds it, and stores what was accepted earlier for
the same session and still waits. So it does not matter which worker, request or command comes first, or
whether one of them dies half-way.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from conversations import statements
from conversations.account import indexes_of, spans
from conversations.extraction import Extraction, Skipped, Turn, extract
from conversations.extraction.calls import unanswered
from conversations.extraction.hashing import chain
from conversations.history import HistoryMismatch, new_turns, without_known_ids
from conversations.models import (
    IntakeRecord,
    IntakeState,
    Session,
    SessionState,
    SessionTag,
    TurnRole,
)
from conversations.selectors import queued_before, turns_of
from mirix.redaction import redact_json
from mirix.text import clean_text, truncate

CHANGED = (
    *("filter_tags", "tag", "last_seq", "turn_count", "history_hash", "first_turn_at", "last_turn_at"),
    *(
        "emptied_at",
        "state",
        "reopened_at",
        "closed_at",
        "sealed_at",
        "next_attempt_at",
        "attempts",
        "last_error",
    ),
)
MAX_ERROR_CHARS = 2_000
MESSAGES_WITH_CALLS = 50
ID_TAKEN = "its id is that of another message of the session, which is kept"
PIECE = (
    *("message_id", "part", "role", "content", "content_hash"),
    *("tool_calls", "tool_name", "tool_call_id", "truncated"),
)
"""What of a turn tells what a message that comes again says beyond it."""
UNREAD = frozenset({"unknown content", "unreadable"})
TRANSIENT_CLASSES = ("08", "40", "53", "55", "57")

logger = logging.getLogger(__name__)


@transaction.atomic(savepoint=False)
def store_turns(*, record: IntakeRecord, messages: list[Any] | None = None) -> Session | None:
    """Store what a request brought for its session; return the session, None while it has no turn.

    `messages` are those of a request that is being accepted and has no row yet: that is written last, and its
    caller gets whatever goes wrong, and undoes it. Otherwise what goes wrong is written to the record, with
    the body, and not raised, unless it is the database's passing trouble (`is_transient`): then it may be
    tried again.
    """
    session, has_waiting, redacts = _lock_session(record)
    if has_waiting:
        for earlier in queued_before(record=record):
            _store_or_fail(earlier, session, redacts)
    if messages is not None:
        _store(record, session, messages, redacts)
    else:
        # Whoever held the lock before may have stored this one as well.
        record.refresh_from_db(fields=["state", "body", "report"])
        if record.state != IntakeState.STORED:
            _store_or_fail(record, session, redacts)
    if session.last_seq == 0:
        session.delete()
        return None
    return session


def _lock_session(record: IntakeRecord) -> tuple[Session, bool, bool]:
    """Return the locked session of a request, made where there is none.

    Also whether requests wait for it, and whether secrets are to be taken out before anything is stored.
    """
    new = Session(
        organization_id=record.organization_id,
        end_user_id=record.end_user_id,
        session_id=record.session_id,
        tag=record.session_tag or SessionTag.TASK,
    )
    return statements.lock_session(new)


def _store_or_fail(record: IntakeRecord, session: Session, redacts: bool) -> None:
    messages = (record.body or {}).get("messages", [])
    try:
        with transaction.atomic():
            _store(record, session, messages, redacts)
    except Exception as error:
        if is_transient(error):
            raise
        session.refresh_from_db()
        fail(record=record, messages=messages, error=error)


def is_transient(error: Exception) -> bool:
    """Return whether a database error may pass by itself: connection, lock, deadlock, no room, shutdown."""
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state[:2] in TRANSIENT_CLASSES


def fail(*, record: IntakeRecord, messages: list[Any], error: Exception) -> None:
    """Note on a request why its turns are not stored, and keep its body for a replay."""
    reason = str(error) if isinstance(error, HistoryMismatch) else f"{type(error).__name__}: {error}"
    record.state = IntakeState.FAILED
    record.error = truncate(clean_text(reason), MAX_ERROR_CHARS)[0]
    record.body = body_of(record, messages)
    with statements.sent_together() as cursor:
        _write(cursor, record, "state", "error", "body")
    if not isinstance(error, HistoryMismatch):
        logger.error("storing the turns of %s failed", record.pk, exc_info=error)


def body_of(record: IntakeRecord, messages: list[Any]) -> dict[str, Any]:
    """Return the messages of a request as it may keep them."""
    redacts = statements.redacts(organization_id=record.organization_id)
    return {"messages": redact_json(messages) if redacts else messages}


def _write(cursor: CursorWrapper, record: IntakeRecord, *fields: str) -> None:
    """Write fields of a request, or the whole row of one that is just being accepted.

    Its turns point at it by then, which the database checks where the transaction ends.
    """
    if record._state.adding:
        statements.insert(cursor, record)
    else:
        statements.update(cursor, record, fields)


def _store(record: IntakeRecord, session: Session, messages: list[Any], redacts: bool) -> None:
    if redacts:
        messages = redact_json(messages)
    extraction = _extract(messages, session)
    if record.state == IntakeState.PARTIAL:
        extraction = _not_yet_read(record, extraction)
    turns, clashing = _new_turns(extraction, record, session)
    extraction = _less(extraction, clashing - _before(record.report, "unread_at"))
    rows = _rows(turns, session)
    _update_session(session, record, turns)
    unread = _unread(record, extraction, turns, clashing, session)
    record.report = _report(record, extraction, turns, unread)
    unreadable = any(item.unreadable for item in extraction.skipped) or bool(unread)
    record.state = IntakeState.PARTIAL if unreadable else IntakeState.STORED
    record.body = {"messages": messages} if unreadable else None
    record.error = ""
    record.stored_at = timezone.now()
    with statements.sent_together() as cursor:
        statements.insert_turns(cursor, rows, record=record, session=session)
        statements.update(cursor, session, CHANGED)
        _write(cursor, record, "report", "state", "body", "error", "stored_at")


def _extract(messages: list[Any], session: Session) -> Extraction:
    """Extract from messages as envelopes hold them: clean.

    Where a result's call came in an earlier request, its tool's name is looked up there.
    """
    extraction = extract(messages, is_clean=True)
    nameless = any(turn.role == "tool" and not turn.tool_name for turn in extraction.turns)
    if not nameless or session.last_seq == 0:
        return extraction
    calling = (
        turns_of(session=session)
        .filter(role=TurnRole.ASSISTANT)
        .exclude(tool_calls=[])
        .order_by("-seq")
        .values_list("seq", "tool_calls")[:MESSAGES_WITH_CALLS]
    )
    if not (found := list(calling)):
        return extraction
    earlier = {call["id"]: call["name"] for _, calls in reversed(found) for call in calls if call["id"]}
    # A result without an id answers the calls of the latest message with some, as within one request.
    last, calls = found[0]
    results = turns_of(session=session).filter(role=TurnRole.TOOL, seq__gt=last)
    open_calls = unanswered(calls, results.values_list("tool_call_id", "tool_name"))
    return extract(messages, earlier, open_calls, is_clean=True)


def _not_yet_read(record: IntakeRecord, extraction: Extraction) -> Extraction:
    """Return what concerns the messages of a partly stored request that nobody could read at first."""
    skipped = {item["index"] for item in (record.report or {})["skipped"] if item.get("unreadable")}
    left = skipped | _before(record.report, "unread_at")
    return Extraction(
        turns=[turn for turn in extraction.turns if turn.index in left],
        skipped=[item for item in extraction.skipped if item.index in left],
        left_out={index: kinds for index, kinds in extraction.left_out.items() if index in left},
    )


def _unread_in(extraction: Extraction) -> set[int]:
    """Return the indexes of messages with turns that also hold what nobody could read."""
    return {index for index, kinds in extraction.left_out.items() if kinds.keys() & UNREAD}


def _less(extraction: Extraction, clashing: set[int]) -> Extraction:
    """Count the messages that contradict what is stored under their id among the skipped ones.

    They are no doubles, so that their request is kept, as that of messages nobody could read.
    """
    taken = [Skipped(index=index, reason=ID_TAKEN, unreadable=True) for index in sorted(clashing)]
    return replace(
        extraction,
        turns=[turn for turn in extraction.turns if turn.index not in clashing],
        skipped=[*extraction.skipped, *taken],
    )


def _new_turns(extraction: Extraction, record: IntakeRecord, session: Session) -> tuple[list[Turn], set[int]]:
    """Return the turns to store, and the indexes of messages that contradict what is stored of them."""
    turns, clashing = without_known_ids(extraction.turns, {})
    partly: dict[int, list[Turn]] = {}
    if record.state == IntakeState.PARTIAL:
        partly = _partly_stored(record, session)
    else:
        turns = new_turns(
            turns,
            history=record.history,
            stored=session.last_seq,
            stored_hash=session.history_hash,
            stored_hashes=lambda: dict(turns_of(session=session).values_list("seq", "content_hash")),
        )
    if not turns or (session.last_seq == 0 and not partly):
        return turns, clashing
    # What is stored decides first, and what came before in the request only then.
    first = turns[0].index
    whole = [turn for turn in extraction.turns if turn.index >= first]
    stored = _stored_by_id(whole, session)
    if not stored and not partly:
        return turns, clashing
    turns, contradicting = without_known_ids(whole, stored, partly)
    return turns, {index for index in clashing if index < first} | contradicting


def _stored_by_id(turns: Sequence[Turn], session: Session) -> dict[str, list[Turn]]:
    """Return the turns that are stored under the ids of these messages; of mere doubles the hashes."""
    ids = {turn.message_id for turn in turns if turn.message_id}
    if not ids:
        return {}
    stored: dict[str, list[Turn]] = {}
    rows = session.turns.filter(message_id__in=ids)
    for message_id, content_hash in rows.values_list("message_id", "content_hash"):
        mark = Turn(index=-1, role="user", content="", content_hash=content_hash)
        stored.setdefault(message_id, []).append(mark)
    hashes = {message_id: {turn.content_hash for turn in marks} for message_id, marks in stored.items()}
    grown = {
        turn.message_id
        for turn in turns
        if turn.message_id in hashes and turn.content_hash not in hashes[turn.message_id]
    }
    if grown:
        found = rows.filter(message_id__in=grown).order_by("message_id", "part").values(*PIECE)
        pieces = [Turn(index=-1, **row) for row in found]
        for message_id, group in groupby(pieces, key=lambda turn: turn.message_id):
            stored[message_id] = list(group)
    return stored


def _partly_stored(record: IntakeRecord, session: Session) -> dict[int, list[Turn]]:
    """Return the turns of each message of which a part could not be read; none where some are gone."""
    numbers = _unread_turns(record.report)
    wanted = set().union(*numbers.values())
    rows = turns_of(session=session).filter(seq__in=wanted).values("seq", *PIECE) if wanted else []
    turns = {row.pop("seq"): Turn(index=-1, **row) for row in rows}
    partly = {index: sorted(numbers.get(index, [])) for index in _before(record.report, "unread_at")}
    return {
        index: [turns[seq] for seq in seqs] if turns.keys() >= set(seqs) else []
        for index, seqs in partly.items()
    }


def _rows(turns: Sequence[Turn], session: Session) -> list[dict[str, Any]]:
    """Return the turns as what each of them has of its own (`statements.OF_TURN`)."""
    return [
        {"seq": seq} | {name: value for name, value in vars(turn).items() if name != "index"}
        for seq, turn in enumerate(turns, start=session.last_seq + 1)
    ]


def _update_session(session: Session, record: IntakeRecord, turns: Sequence[Turn]) -> None:
    """Bring the session up to its new turns; the later request's tags win key by key."""
    session.filter_tags = session.filter_tags | record.filter_tags
    session.tag = record.session_tag or session.tag
    if turns:
        accepted = record.created_at
        session.last_seq += len(turns)
        session.turn_count += len(turns)
        session.history_hash = chain((turn.content_hash for turn in turns), session.history_hash)
        session.first_turn_at = min(session.first_turn_at or accepted, accepted)
        session.last_turn_at = max(session.last_turn_at or accepted, accepted)
        session.emptied_at = None
        if session.state != SessionState.OPEN:
            _reopen(session)


def _reopen(session: Session) -> None:
    """Open a session again: there is more to learn, so earlier failures to learn do not count any more."""
    session.state = SessionState.OPEN
    session.reopened_at = timezone.now()
    session.closed_at = session.sealed_at = session.next_attempt_at = None
    session.attempts = 0
    session.last_error = ""


def _report(
    record: IntakeRecord, extraction: Extraction, turns: Sequence[Turn], unread: Mapping[int, set[int]]
) -> dict[str, Any]:
    """Account for every message; a replayed part is added to the account of what was stored before."""
    before = record.report or {}
    roles = Counter(before.get("roles", {}))
    roles.update(turn.role for turn in turns)
    skipped = [item for item in before.get("skipped", []) if not item.get("unreadable")]
    skipped += [_skipped_entry(item) for item in extraction.skipped]
    omitted = Counter(before.get("omitted", {}))
    kept = {turn.index for turn in turns}
    partly = _before(before, "unread_at")
    omitted.update(extraction.omitted_from(kept))
    # Of a message that was partly read before, what is stored already is no double.
    doubles = Counter(turn.index for turn in extraction.turns if turn.index not in partly)
    doubles.subtract(turn.index for turn in turns if turn.index not in partly)
    marked = {
        "truncated_at": {turn.index for turn in turns if turn.truncated} | _before(before, "truncated_at"),
        "duplicate_at": (doubles.keys() - kept) | _before(before, "duplicate_at"),
        "unread_at": set(unread),
    }
    numbers = {str(index): spans(unread[index]) for index in sorted(unread)}
    return {
        "stored": before.get("stored", 0) + len(turns),
        "truncated": before.get("truncated", 0) + sum(turn.truncated for turn in turns),
        "duplicate": before.get("duplicate", 0) + doubles.total(),
        "skipped": sorted(skipped, key=lambda item: item["index"]),
        "omitted": dict(omitted),
        "roles": dict(roles),
        **{name: spans(found) for name, found in marked.items() if found},
        **({"unread_turns": numbers} if numbers else {}),
    }


def _unread(
    record: IntakeRecord,
    extraction: Extraction,
    turns: Sequence[Turn],
    clashing: set[int],
    session: Session,
) -> dict[int, set[int]]:
    """Return the numbers of the turns of each message of which a part was not read, by its index."""
    before = _unread_turns(record.report)
    numbers = {index: before.get(index, set()) for index in _before(record.report, "unread_at")}
    unclear = numbers.keys() & clashing
    for seq, turn in enumerate(turns, start=session.last_seq - len(turns) + 1):
        numbers.setdefault(turn.index, set()).add(seq)
    return {index: numbers[index] for index in numbers.keys() & (_unread_in(extraction) | unclear)}


def _unread_turns(report: dict[str, Any] | None) -> dict[int, set[int]]:
    return {int(index): indexes_of(found) for index, found in (report or {}).get("unread_turns", {}).items()}


def _before(report: dict[str, Any] | None, name: str) -> set[int]:
    return indexes_of((report or {}).get(name, []))


def _skipped_entry(item: Skipped) -> dict[str, Any]:
    entry: dict[str, Any] = {"index": item.index, "reason": item.reason}
    return entry | {"unreadable": True} if item.unreadable else entry
