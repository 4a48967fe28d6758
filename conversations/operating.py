"""What operators do with requests and sessions by hand: each act with its event in the audit trail.

A few requests are replayed at once; many are left to the worker, so that nobody waits for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from conversations.intake import QUEUE, replay
from conversations.models import IntakeRecord, IntakeState, Session, SessionState
from conversations.sealing import close_session, tell
from conversations.selectors import left_behind, unsuccessful
from mirix.collisions import through_collisions
from mirix.queue import defer
from mirix.tenants import audit
from mirix.tenants.audit import Act, Actor
from mirix.tenants.owners import Owner

REPLAY = "conversations.replay"
AT_ONCE = 25
"""So many are replayed while their operator waits."""
BATCH = 100
"""So many are one job."""
AT_MOST = 5_000
"""So many are taken on at a time, the oldest first."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """What came of an order to replay."""

    states: Counter[str] = field(default_factory=Counter)
    """How many requests are in which state now."""
    turns: int = 0
    """How many turns were stored that were not there before."""
    queued: int = 0
    """How many are left to the worker."""


@transaction.atomic
def replay_request(*, record: IntakeRecord, actor: Actor) -> IntakeRecord:
    """Replay one request as `conversations.intake.replay` does; one without a body leaves no event."""
    if not record.body:
        return record
    before, stored = record.state, stored_of(record)
    record = replay(record=record)
    audit.record(
        organization=record.organization,
        actor=actor,
        action=Act.INTAKE_REPLAYED,
        target=record,
        details={"state": [before, record.state], "turns": stored_of(record) - stored},
    )
    return record


@transaction.atomic
def give_up(*, record: IntakeRecord, actor: Actor) -> bool:
    """Drop for good what a request left behind, as its retention would do later; whether there was anything.

    Its state, error and account stay, and say what was never stored. One that still waits for its worker is
    left alone. Locks the row: a replay that goes on now has its say first.
    """
    left = left_behind(IntakeRecord.objects.with_organization_of(record).filter(pk=record.pk))
    locked = left.exclude(state=IntakeState.QUEUED).select_for_update(no_key=True).first()
    if locked is None:
        return False
    locked.body, locked.body_pruned_at = None, timezone.now()
    locked.save(update_fields=["body", "body_pruned_at"])
    audit.record(
        organization=locked.organization,
        actor=actor,
        action=Act.INTAKE_GIVEN_UP,
        target=locked,
        details={"state": locked.state, "turns": stored_of(locked)},
    )
    return True


def replay_requests(*, records: QuerySet[IntakeRecord], actor: Actor) -> Replayed:
    """Replay the oldest `AT_MOST` of `records`, in the order of their acceptance; see `replayable`."""
    ids = list(records.order_by("created_at", "pk").values_list("pk", flat=True)[:AT_MOST])
    if len(ids) > AT_ONCE:
        _leave_to_worker(ids, actor)
        return Replayed(queued=len(ids))
    return _replay_each(records, ids, actor)


def replay_by_id(*, intake_ids: Sequence[str], actor: Actor) -> Replayed:
    """Replay those of some requests that still have something to store; for the worker."""
    return _replay_each(IntakeRecord.objects.all(), intake_ids, actor)


def _replay_each(records: QuerySet[IntakeRecord], ids: Sequence[str], actor: Actor) -> Replayed:
    states: Counter[str] = Counter()
    turns = 0
    for pk in ids:
        # One after the other: a body may be large, and another request may have stored this one meanwhile.
        replayed = through_collisions(lambda pk=pk: _replay_one(records, pk, actor))  # type: ignore[misc]
        if replayed is None:
            continue
        record, new = replayed
        states[record.state] += 1
        turns += new
    return Replayed(states=states, turns=turns)


def _replay_one(records: QuerySet[IntakeRecord], pk: str, actor: Actor) -> tuple[IntakeRecord, int] | None:
    """Return the request with the number of its new turns; None where it is stored by now, or erased."""
    kept = records.filter(pk=pk, body__isnull=False).defer(None)
    record = kept.select_related("organization", "end_user").first()
    if record is None:
        return None
    before = stored_of(record)
    try:
        record = replay_request(record=record, actor=actor)
    except IntakeRecord.DoesNotExist:  # by whoever held the session
        return None
    return record, stored_of(record) - before


@transaction.atomic
def _leave_to_worker(ids: Sequence[str], actor: Actor) -> None:
    who = {"kind": actor.kind, "id": actor.id, "name": actor.name}
    for start in range(0, len(ids), BATCH):
        defer(REPLAY, queue=QUEUE, intake_ids=list(ids[start : start + BATCH]), actor=who)


def stored_of(record: IntakeRecord) -> int:
    """Return how many turns of a request are stored."""
    return int((record.report or {}).get("stored", 0))


@transaction.atomic
def close(*, session: Session, actor: Actor) -> Session:
    """Close an open session as its caller would; any other is left as it is, without an event."""
    if session.state != SessionState.OPEN:
        return session
    owner = Owner(organization=session.organization, end_user=session.end_user)
    closed = close_session(owner=owner, session_id=session.session_id)
    audit.record(organization=session.organization, actor=actor, action=Act.SESSION_CLOSED, target=session)
    return closed


def retry_session(*, session: Session, actor: Actor) -> bool:
    """Have a session that was given up, or that rests after a failure, read again by the next run.

    It has all of its attempts again, and is due at once: an automatic run takes it as soon as none of its
    owner's is open. Returns whether there was anything to do; else nothing is written. Locks the row.
    """
    if not _make_due(session, actor):
        return False
    tell(Owner(organization=session.organization, end_user=session.end_user))
    return True


def retry_sessions(*, sessions: Sequence[Session], actor: Actor) -> set[str]:
    """Do the same for several, each for itself; return the ids of those that are read again."""
    due = [session for session in sessions if _make_due(session, actor)]
    owners = {
        session.end_user_id: Owner(organization=session.organization, end_user=session.end_user)
        for session in due
    }
    for owner in owners.values():
        tell(owner)
    return {session.pk for session in due}


@transaction.atomic
def _make_due(session: Session, actor: Actor) -> bool:
    rows = Session.objects.with_owner_of(session).filter(pk=session.pk)
    locked = unsuccessful(rows).select_for_update(no_key=True).first()
    if locked is None:
        return False
    before = {"state": locked.state, "attempts": locked.attempts}
    locked.state, locked.attempts, locked.next_attempt_at = SessionState.SEALED, 0, timezone.now()
    locked.save(update_fields=["state", "attempts", "next_attempt_at"])
    audit.record(
        organization=session.organization,
        actor=actor,
        action=Act.SESSION_RETRIED,
        target=locked,
        details=before,
    )
    return True
