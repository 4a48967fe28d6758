"""What is erased of what came in: turns, requests, sessions. Registered with `mirix.tenants.erasure`."""

from __future__ import annotations

from conversations.intake import STORE_TURNS
from conversations.models import ConversationMessage, IntakeRecord, Session
from conversations.operating import REPLAY
from mirix.tenants.erasure import Eraser, Erasing
from mirix.tenants.models import EndUser


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


ERASER = Eraser(name="conversations", lock_end_user=lock_end_user, erase_end_user=erase_end_user)
