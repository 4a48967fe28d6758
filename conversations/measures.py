"""What came in, in numbers, for `/metrics`."""

from __future__ import annotations

from django.db.models import Count, Min
from django.utils import timezone

from conversations.models import IntakeRecord, IntakeState, Session
from mirix.measures import Measure, Readings

INSTALLATION = "numbers of the installation"


def _requests() -> Readings:
    rows = IntakeRecord.objects.unscoped(INSTALLATION).order_by().values_list("state")
    return [({"state": state}, number) for state, number in rows.annotate(Count("pk")).order_by("state")]


def _oldest() -> Readings:
    queued = IntakeRecord.objects.unscoped(INSTALLATION).filter(state=IntakeState.QUEUED)
    oldest = queued.aggregate(oldest=Min("created_at"))["oldest"]
    return [({}, (timezone.now() - oldest).total_seconds() if oldest else 0.0)]


def _sessions() -> Readings:
    rows = Session.objects.unscoped(INSTALLATION).order_by().values_list("state")
    return [({"state": state}, number) for state, number in rows.annotate(Count("pk")).order_by("state")]


MEASURES = (
    Measure(
        name="mirix_intake_requests",
        text="Accepted requests by state: queued, stored, partial, failed; those whose rows are kept.",
        read=_requests,
    ),
    Measure(
        name="mirix_intake_oldest_seconds",
        text="For how long the oldest request whose turns are not stored yet has waited.",
        read=_oldest,
    ),
    Measure(
        name="mirix_sessions",
        text="Sessions by state; dead are those that were given up.",
        read=_sessions,
    ),
)
