"""Sealing: when a session is complete enough to learn from.

By itself when a newer session of the owner began or when nothing came for `MIRIX_SESSION_IDLE_MINUTES`
(`conversations.selectors.sealable`), or because its caller closed it. Storing new turns re-opens it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from conversations import statements
from conversations.models import Session, SessionState, SessionTag
from conversations.selectors import idle_since, queued_for_session
from conversations.storage import store_turns
from mirix.tenants.models import EndUser
from mirix.tenants.owners import Owner

BATCH = 500
logger = logging.getLogger(__name__)
_callbacks: list[Callable[[Owner], object]] = []


def on_sealed(callback: Callable[[Owner], object]) -> None:
    """Have `callback(owner)` called whenever task sessions of an owner were sealed.

    Called once per owner, within the sealing transaction: a job that it defers is committed with the seal
    or not at all. Its own failure is logged, undone, and does not undo the seal. For `AppConfig.ready`.
    """
    if callback not in _callbacks:
        _callbacks.append(callback)


def seal_sessions(*, owner: Owner | None = None, now: datetime | None = None, carefully: bool = True) -> int:
    """Seal every session that is due, of one owner or of all; return how many.

    A session that somebody writes to at this moment is passed over: it is about to have newer turns.
    `carefully` is that of `tell`.
    """
    total, sealed = 0, BATCH
    while sealed == BATCH:
        sealed = _seal_batch(owner, now or timezone.now(), carefully)
        total += sealed
    return total


@transaction.atomic(savepoint=False)
def _seal_batch(owner: Owner | None, now: datetime, carefully: bool) -> int:
    sealed = statements.seal(owner=owner, now=now, idle_since=idle_since(now=now), limit=BATCH)
    # Conversations teach nothing and are not told.
    taught = {end_user_id for end_user_id, tag in sealed if tag == SessionTag.TASK}
    if owner is not None and taught:
        tell(owner, carefully=carefully)
    elif taught:
        _tell_owners(taught)
    return len(sealed)


@transaction.atomic
def close_session(*, owner: Owner, session_id: str, quietly: bool = False) -> Session:
    """Seal a session because its caller says that it is complete; closing it again changes nothing.

    Requests for it that still wait are stored first, so that they do not re-open it later. `quietly` leaves
    it to the caller to `tell` about many sessions at once. Raises `Session.DoesNotExist`.
    """
    waiting = queued_for_session(owner=owner, session_id=session_id).last()
    if waiting is not None:
        store_turns(record=waiting)
    session = (
        Session.objects.for_owner(owner)
        .select_for_update(no_key=True, of=("self",))
        .select_related("end_user")
        .get(session_id=session_id)
    )
    session.closed_at = session.closed_at or timezone.now()
    was_open = session.state == SessionState.OPEN
    if was_open:
        session.state = SessionState.SEALED
        session.sealed_at = session.closed_at
    session.save(update_fields=["closed_at", "state", "sealed_at"])
    if was_open and session.tag == SessionTag.TASK and not quietly:
        tell(owner)
    return session


def _tell_owners(pks: Iterable[str]) -> None:
    """Tell once per owner, of whatever organization; not within a request."""
    for end_user in EndUser.objects.filter(pk__in=pks).select_related("organization").order_by("pk"):
        tell(Owner(organization=end_user.organization, end_user=end_user))


def tell(owner: Owner, *, carefully: bool = True) -> None:
    """Tell who registered with `on_sealed` that sessions of this owner were sealed.

    Not `carefully`, their failure is raised, for callers who undo everything and begin again.
    """
    for callback in _callbacks:
        if not carefully:
            callback(owner)
            continue
        try:
            with transaction.atomic():
                callback(owner)
        except Exception:
            logger.exception("what follows the sealing of sessions of %s failed", owner.end_user.pk)
