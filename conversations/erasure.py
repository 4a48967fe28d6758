"""What is erased of what came in: turns, requests, sessions. Registered with `mirix.tenants.erasure`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import Exists, OuterRef, Q

from conversations.intake import STORE_TURNS
from conversations.models import ConversationMessage, IntakeRecord, Session, SessionState
from conversations.operating import REPLAY
from conversations.sealing import tell
from mirix.tenants.erasure import Eraser, Erasing
from mirix.tenants.models import Client, EndUser
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet


def lock_end_user(end_user: EndUser) -> None:
    """Lock the sessions: whoever stores turns holds that of theirs."""
    rows = Session.objects.with_organization_of(end_user).filter(end_user=end_user)
    list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))


def erase_end_user(end_user: EndUser, erasing: Erasing) -> None:
    """Erase all that came in for an end user, and what still waits to be stored."""
    for model in (ConversationMessage, IntakeRecord, Session):
        pks = erasing.delete(model.objects.with_organization_of(end_user).filter(end_user=end_user))
        if model is IntakeRecord:
            drop_jobs(pks, erasing)


def drop_jobs(intake_ids: list[str], erasing: Erasing) -> None:
    """Delete the jobs that were to store these requests."""
    erasing.drop_jobs(STORE_TURNS, "intake_id", intake_ids)
    erasing.drop_jobs(REPLAY, "intake_ids", intake_ids)


def touched_sessions(client: Client) -> OwnedQuerySet:
    """Return the sessions that a client had a part in, by their turns or by its requests."""
    turns = ConversationMessage.objects.filter(session=OuterRef("pk"), client=client)
    return Session.objects.with_organization_of(client).filter(
        Q(Exists(turns)) | Q(Exists(_requests_of_session().filter(client=client)))
    )


def _requests_of_session() -> OwnedQuerySet:
    return IntakeRecord.objects.filter(end_user=OuterRef("end_user"), session_id=OuterRef("session_id"))


def end_users_of_client(client: Client) -> set[str]:
    """Return the ids of the end users whom a client sent anything of."""
    return {
        pk
        for model in (ConversationMessage, IntakeRecord)
        for pk in model.objects.with_organization_of(client)
        .filter(client=client)
        .order_by()
        .values_list("end_user", flat=True)
        .distinct()
    }


def lock_client(client: Client, end_users: Collection[str]) -> None:
    """Lock the sessions that it had a part in."""
    rows = touched_sessions(client).select_for_update(of=("self",)).order_by("pk")
    list(rows.values_list("pk", flat=True))


def erase_client(client: Client, end_users: Collection[str], erasing: Erasing) -> None:
    """Erase what a client sent; of sessions that others took part in, their turns stay, to be read anew."""
    touched = list(touched_sessions(client).values_list("pk", flat=True))
    turns = ConversationMessage.objects.with_organization_of(client).filter(client=client)
    erasing.delete(turns)
    drop_jobs(
        erasing.delete(IntakeRecord.objects.with_organization_of(client).filter(client=client)), erasing
    )
    sessions = Session.objects.with_organization_of(client).filter(pk__in=touched)
    others = ConversationMessage.objects.filter(session=OuterRef("pk"))
    is_others = Q(Exists(others)) | Q(Exists(_requests_of_session()))
    erasing.delete(sessions.exclude(is_others))
    for session in sessions.all():
        _go_back(session)


def _go_back(session: Session) -> None:
    """Bring a session to what is left of it: it says nothing of what it was, and is learned from anew."""
    tags: dict[str, Any] = {}
    requests = IntakeRecord.objects.with_owner_of(session).filter(session_id=session.session_id)
    for found in requests.order_by("created_at", "pk").values_list("filter_tags", flat=True):
        tags |= found
    session.filter_tags = tags
    session.turn_count = session.turns.count()
    session.distilled_through, session.attempts, session.last_error = 0, 0, ""
    session.next_attempt_at = session.distilled_at = None
    if session.state != SessionState.OPEN:
        session.state = SessionState.SEALED
    if session.turn_count == 0:
        session.distilled_through = session.last_seq
        session.state = SessionState.DISTILLED
    session.save()


def is_left(end_user: EndUser) -> bool:
    """Return whether anything of an end user is left."""
    return any(
        model.objects.with_organization_of(end_user).filter(end_user=end_user).exists()
        for model in (Session, IntakeRecord)
    )


def settle(end_user: EndUser) -> None:
    """Have a run begin where enough waits to be read again."""
    tell(Owner(organization=end_user.organization, end_user=end_user))


ERASER = Eraser(
    name="conversations",
    lock_end_user=lock_end_user,
    erase_end_user=erase_end_user,
    end_users_of_client=end_users_of_client,
    lock_client=lock_client,
    erase_client=erase_client,
    is_left=is_left,
    settle=settle,
)
