"""Reads of the conversations app; every queryset is scoped to an owner or an organization."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from conversations.models import (
    ConversationMessage,
    IntakeRecord,
    IntakeState,
    Session,
    SessionState,
    SessionTag,
)
from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from mirix.text import clean_text


def sessions_of(*, organization: Organization) -> QuerySet[Session]:
    """Return an organization's sessions with their end users, ready to be shown."""
    return Session.objects.for_organization(organization).select_related("end_user")


def find_session(*, owner: Owner, session_id: str) -> Session | None:
    """Return the owner's session of that id."""
    sessions = Session.objects.for_owner(owner).select_related("end_user")
    return sessions.filter(session_id=clean_text(session_id)).first()


def turns_of(*, session: Session) -> QuerySet[ConversationMessage]:
    """Return the turns of a session in their order."""
    return session.turns.order_by("seq")


def intake_of(*, organization: Organization) -> QuerySet[IntakeRecord]:
    """Return an organization's accepted requests, their bodies and kept answers left in the database."""
    records = IntakeRecord.objects.for_organization(organization)
    return records.select_related("end_user").defer("body", "answer")


def find_intake(*, organization: Organization, intake_id: str) -> IntakeRecord | None:
    """Return the organization's accepted request of that id."""
    records = IntakeRecord.objects.for_organization(organization).select_related("organization", "end_user")
    return records.filter(pk=clean_text(intake_id)).first()


def dead_sessions_of(*, organization: Organization) -> QuerySet[Session]:
    """Return the sessions of an organization that were given up and can still be learned from."""
    dead = Session.objects.for_organization(organization).filter(state=SessionState.DEAD)
    return dead.filter(last_seq__gt=F("distilled_through"))


def unsuccessful(sessions: QuerySet[Session], *, now: datetime | None = None) -> QuerySet[Session]:
    """Return those of some sessions that were given up, or that rest after a failure, and have turns left."""
    resting = Q(attempts__gt=0) | Q(next_attempt_at__gt=now or timezone.now())
    failed = Q(state=SessionState.DEAD) | Q(resting, state=SessionState.SEALED)
    return sessions.filter(failed, last_seq__gt=F("distilled_through"))


def has_failed(session: Session) -> bool:
    """Return whether a session, as it was read, is one of `unsuccessful`."""
    due = session.next_attempt_at is None or session.next_attempt_at <= timezone.now()
    rests = session.state == SessionState.SEALED and (session.attempts > 0 or not due)
    return (session.state == SessionState.DEAD or rests) and session.last_seq > session.distilled_through


def failed_intake_of(*, organization: Organization) -> QuerySet[IntakeRecord]:
    """Return the requests of an organization whose turns could not be stored, and that can be replayed."""
    failed = IntakeRecord.objects.for_organization(organization).filter(state=IntakeState.FAILED)
    return failed.filter(body__isnull=False)


def queued_before(*, record: IntakeRecord) -> QuerySet[IntakeRecord]:
    """Return the requests for the same session that were accepted earlier and still wait, in their order."""
    earlier = Q(created_at__lt=record.created_at) | Q(created_at=record.created_at, pk__lt=record.pk)
    return _queued(IntakeRecord.objects.with_owner_of(record), record.session_id).filter(earlier)


def queued_for_session(*, owner: Owner, session_id: str) -> QuerySet[IntakeRecord]:
    """Return the owner's requests for one session that still wait, in the order of their acceptance."""
    return _queued(IntakeRecord.objects.for_owner(owner), session_id)


def _queued(records: OwnedQuerySet, session_id: str) -> OwnedQuerySet:
    return records.filter(session_id=session_id, state=IntakeState.QUEUED).order_by("created_at", "pk")


def overdue_intake(*, now: datetime | None = None) -> QuerySet[IntakeRecord]:
    """Return requests that wait for longer than a living worker would take, oldest first."""
    limit = timedelta(seconds=settings.MIRIX_WORKER_STALLED_SECONDS)
    return IntakeRecord.objects.filter(
        state=IntakeState.QUEUED, created_at__lt=(now or timezone.now()) - limit
    ).order_by("created_at", "pk")


def replayable_intake(*, organization: Organization) -> QuerySet[IntakeRecord]:
    """Return the organization's requests whose turns are not all stored and whose body is kept."""
    records = left_behind(IntakeRecord.objects.for_organization(organization))
    return records.select_related("organization", "end_user").order_by("created_at", "pk")


def left_behind(records: QuerySet[IntakeRecord]) -> QuerySet[IntakeRecord]:
    """Return those of some requests whose turns are not all stored and whose body is kept."""
    return records.filter(body__isnull=False).exclude(state=IntakeState.STORED)


def idle_since(*, now: datetime) -> datetime | None:
    """Return when the last turn of an idle session came at the latest; None where none counts as idle."""
    minutes = settings.MIRIX_SESSION_IDLE_MINUTES
    return now - timedelta(minutes=minutes) if minutes > 0 else None


def sealable(*, now: datetime | None = None) -> OwnedQuerySet:
    """Return open sessions that are complete: idle for long enough, or followed by a newer one.

    Newer means: another session of the owner began after this one's last turn. For a session that was
    never re-opened this is the plain rule “a newer session exists”, since turns that come after the newer
    one began re-open it. `conversations.statements` seals by the same rule.
    """
    newer = Session.objects.filter(end_user=OuterRef("end_user"), first_turn_at__gt=OuterRef("last_turn_at"))
    complete = Q(Exists(newer))
    if since := idle_since(now=now or timezone.now()):
        complete |= Q(last_turn_at__lt=since)
    return Session.objects.filter(complete, state=SessionState.OPEN)


def distillable(*, now: datetime | None = None) -> OwnedQuerySet:
    """Return sealed task sessions with turns that were not learned from yet and whose time has come.

    Oldest first. Of every owner: for schedulers, which count; a run asks `distillable_sessions`.
    """
    due = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now or timezone.now())
    return Session.objects.filter(
        due, state=SessionState.SEALED, tag=SessionTag.TASK, last_seq__gt=F("distilled_through")
    ).order_by("first_turn_at", "pk")


def distillable_sessions(
    *, owner: Owner, limit: int | None = None, now: datetime | None = None
) -> QuerySet[Session]:
    """Return up to `limit` of the owner's sessions to learn from, oldest first."""
    return distillable(now=now).for_owner(owner)[:limit]
