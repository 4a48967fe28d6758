"""What goes after its time in this app: turns, bodies of requests, rows of requests, rows of empty sessions.

Registered with `conversations.retention`, which says what a step is and what a batch has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Case, Count, F, Func, Min, OuterRef, Q, Subquery, TextField, Value, When
from django.db.models.functions import Coalesce, Concat, Greatest

from conversations.models import ConversationMessage, IntakeRecord, IntakeState, Session
from conversations.retention import Scope, Step, any_of, interests, register_step, row_step
from mirix.tenants.querysets import OwnedQuerySet

TURNS_A_BATCH = 500
SESSIONS_A_BATCH = 20
DISTILLED_TURNS = "distilled_turns"
DROPPED = "the details were dropped with the body after their time"
NEVER_STORED = "nobody stored it, and the body was dropped after its time"

Place = tuple[datetime, str]
"""Where a walk over sessions stands: the time of the first turn, and the key."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of turns: the sessions that have some which are due, and how to tell them there."""

    sessions: Callable[[Scope, datetime], OwnedQuerySet]
    turns: Callable[[Collection[Session], datetime], Q]


def _distilled_sessions(scope: Scope, before: datetime) -> OwnedQuerySet:
    """Sessions with turns that were distilled before that moment; `through` is the last of them.

    A session that goes on is distilled again and again: apps upstairs know when it was how far.
    """
    last = Case(When(distilled_at__lt=before, then=F("distilled_through")), default=0)
    earlier = [interest.distilled_before(before) for interest in interests()]
    through = Greatest(last, *(Coalesce(number, 0) for number in earlier), Value(0))
    return (
        scope.of(Session.objects.all())
        .filter(first_turn_at__lt=before, pruned_through__lt=F("distilled_through"))
        .annotate(through=through)
        .filter(through__gt=F("pruned_through"))
    )


def _distilled_turns(sessions: Collection[Session], before: datetime) -> Q:
    return _any(Q(session=session, seq__lte=session.through) for session in sessions)  # type: ignore[attr-defined]


def _undistilled_sessions(scope: Scope, before: datetime) -> OwnedQuerySet:
    """Sessions whose first turn that was never distilled was stored before that moment."""
    undistilled = ConversationMessage.objects.filter(
        session=OuterRef("pk"), seq__gt=OuterRef("distilled_through")
    )
    return (
        scope.of(Session.objects.all())
        .filter(first_turn_at__lt=before, distilled_through__lt=F("last_seq"))
        .annotate(oldest=Subquery(undistilled.order_by("seq").values("created_at")[:1]))
        .filter(oldest__lt=before)
    )


def _undistilled_turns(sessions: Collection[Session], before: datetime) -> Q:
    found = _any(Q(session=session, seq__gt=session.distilled_through) for session in sessions)
    return found & Q(created_at__lt=before)


def _any(conditions: Iterator[Q]) -> Q:
    found = Q()
    for condition in conditions:
        found |= condition
    return found


DISTILLED = Kind(sessions=_distilled_sessions, turns=_distilled_turns)
UNDISTILLED = Kind(sessions=_undistilled_sessions, turns=_undistilled_turns)


def _due_turns(kind: Kind, sessions: Collection[Session], before: datetime) -> OwnedQuerySet:
    waiting = any_of([interest.turn_waits() for interest in interests()])
    return ConversationMessage.objects.filter(kind.turns(sessions, before)).exclude(waiting)


def _prune_turns(kind: Kind, scope: Scope, before: datetime) -> Iterator[int]:
    """Walk the sessions in the order of their first turn, a few at a time, until nothing is due in them."""
    place: Place | None = None
    while True:
        count, place, is_through = _turn_batch(kind, scope, before, place)
        if count:
            yield count
        if is_through:
            return


@transaction.atomic
def _turn_batch(
    kind: Kind, scope: Scope, before: datetime, after: Place | None
) -> tuple[int, Place | None, bool]:
    """Prune up to `TURNS_A_BATCH` turns of the sessions behind `after`.

    Returns how many, where to go on, and whether that is all.
    """
    rows = kind.sessions(scope, before).order_by("first_turn_at", "pk")
    if after is not None:
        rows = rows.filter(
            Q(first_turn_at__gt=after[0]) | Q(first_turn_at=after[0], pk__gt=after[1]),
            first_turn_at__gte=after[0],
        )
    sessions = list(rows.select_for_update(skip_locked=True, no_key=True, of=("self",))[:SESSIONS_A_BATCH])
    if not sessions:
        return 0, after, True
    due = _due_turns(kind, sessions, before)
    pks = list(due.order_by("session", "seq").values_list("pk", flat=True)[:TURNS_A_BATCH])
    count = _delete_turns(pks, due, scope.now) if pks else 0
    if len(pks) == TURNS_A_BATCH and count:
        return count, after, False  # there may be more in these
    last = sessions[-1]
    return count, (last.first_turn_at, last.pk), len(sessions) < SESSIONS_A_BATCH


def _delete_turns(pks: list[int], due: OwnedQuerySet, now: datetime) -> int:
    """Delete those of the turns that nobody came to need since they were found; return how many."""
    needed: set[int] = set()
    for interest in interests():
        needed.update(interest.claim_turns(pks))
    # Asked again: what was not waiting a moment ago may be by now.
    going = dict(due.filter(pk__in=set(pks) - needed).values_list("pk", "session"))
    for interest in interests():
        interest.release_turns(list(going), now)
    ConversationMessage.objects.filter(pk__in=list(going)).only("pk").delete()
    _update_sessions(set(going.values()), now)
    return len(going)


def _update_sessions(pks: set[str], now: datetime) -> None:
    """Bring locked sessions up to what is left of them; from what is gone nothing can be learned any more."""
    turns = ConversationMessage.objects.filter(session=OuterRef("pk")).order_by().values("session")
    unread = turns.filter(seq__gt=OuterRef("distilled_through"))
    sessions = Session.objects.filter(pk__in=pks)
    sessions.update(
        turn_count=Coalesce(Subquery(turns.annotate(n=Count("pk")).values("n")), 0),
        pruned_through=Coalesce(Subquery(turns.annotate(n=Min("seq") - 1).values("n")), F("last_seq")),
        distilled_through=Coalesce(Subquery(unread.annotate(n=Min("seq") - 1).values("n")), F("last_seq")),
        pruned_at=now,
    )
    needed = any_of([interest.session_is_needed() for interest in interests()])
    sessions.filter(turn_count=0).exclude(needed).update(emptied_at=now)


def _count_turns(kind: Kind, scope: Scope, before: datetime) -> int:
    total = 0
    sessions: list[Session] = []
    for session in kind.sessions(scope, before).order_by("first_turn_at", "pk").iterator():
        sessions.append(session)
        if len(sessions) == SESSIONS_A_BATCH:
            total += _due_turns(kind, sessions, before).count()
            sessions = []
    return total + (_due_turns(kind, sessions, before).count() if sessions else 0)


def _kept_bodies(scope: Scope, before: datetime) -> OwnedQuerySet:
    return scope.of(IntakeRecord.objects.all()).filter(body__isnull=False, created_at__lt=before)


def _drop_bodies(pks: list[str], scope: Scope, _before: datetime) -> None:
    """Drop bodies of requests that nobody replayed; what still waits has failed then, and says why."""
    records = IntakeRecord.objects.filter(pk__in=pks)
    records.filter(state=IntakeState.QUEUED).update(state=IntakeState.FAILED, error=NEVER_STORED)
    records.filter(error__contains=": ").update(error=error_without_details())
    records.update(body=None, body_pruned_at=scope.now)


def error_without_details(column: str = "error", dropped: str = DROPPED) -> Concat:
    """Return an error's kind, and that its details are gone: they may repeat what somebody wrote."""
    kind = Func(F(column), Value(": "), Value(1), function="split_part", output_field=TextField())
    return Concat(kind, Value(f": {dropped}"))


def _old_requests(scope: Scope, before: datetime) -> OwnedQuerySet:
    return scope.of(IntakeRecord.objects.all()).filter(body__isnull=True, created_at__lt=before)


def _drop_requests(pks: list[str], _scope: Scope, _before: datetime) -> None:
    IntakeRecord.objects.filter(pk__in=pks).only("pk").delete()


def _empty_sessions(scope: Scope, before: datetime) -> OwnedQuerySet:
    needed = any_of([interest.session_is_needed() for interest in interests()])
    return scope.of(Session.objects.all()).filter(emptied_at__lt=before, turn_count=0).exclude(needed)


def _drop_sessions(pks: list[str], _scope: Scope, _before: datetime) -> None:
    Session.objects.filter(pk__in=pks).delete()


def _turn_step(kind: Kind, name: str, what: str, limit: str) -> Step:
    return Step(
        kind=name,
        what=what,
        limit=limit,
        due=lambda scope, before: _count_turns(kind, scope, before),
        prune=lambda scope, before: _prune_turns(kind, scope, before),
    )


def register_steps() -> None:
    """Have all of this done with every prune."""
    register_step(_turn_step(DISTILLED, DISTILLED_TURNS, "distilled turns", "conversation_retention_days"))
    register_step(
        _turn_step(UNDISTILLED, "undistilled_turns", "turns never distilled", "undistilled_retention_days")
    )
    register_step(
        row_step(
            kind="request_bodies",
            what="bodies of requests not stored",
            limit="raw_retention_days",
            rows=_kept_bodies,
            drop=_drop_bodies,
            no_key=True,
        )
    )
    register_step(
        row_step(
            kind="requests",
            what="rows of requests",
            limit="undistilled_retention_days",
            rows=_old_requests,
            drop=_drop_requests,
        )
    )
    register_step(
        row_step(
            kind="sessions",
            what="rows of empty sessions",
            limit="undistilled_retention_days",
            rows=_empty_sessions,
            drop=_drop_sessions,
            order="emptied_at",
        )
    )
