"""Runs of owners of whom something is erased: what goes on ends, and what models said of it goes.

A model is shown the owner's skills and lessons, so that any of its answers may repeat what is erased.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db.models import F, Q
from django.db.models.functions import Now

from mirix.tenants.erasure import Erasing
from skills.models import AutoDreamRun, DistillationAttempt, ProposerCall, RunState

ENDED = "Something that it had read was erased."


def end_runs(end_users: Collection[str], erasing: Erasing) -> None:
    """Lock the runs of these end users and end what is going on; under its fence it writes no more."""
    runs = AutoDreamRun.objects.for_organization(erasing.organization).filter(end_user__in=end_users)
    list(runs.select_for_update().order_by("pk").values_list("pk", flat=True))
    runs.filter(state=RunState.RUNNING).update(
        state=RunState.INTERRUPTED, fence=F("fence") + 1, finished_at=Now(), error=ENDED
    )


def drop_answers(end_users: Collection[str], erasing: Erasing) -> None:
    """Drop what models answered for these end users, and what runs noted of it; their figures stay."""
    organization, of_owners = erasing.organization, {"end_user__in": end_users}
    erasing.changed(DistillationAttempt, AutoDreamRun)
    erasing.delete(ProposerCall.objects.for_organization(organization).filter(**of_owners))
    attempts = DistillationAttempt.objects.for_organization(organization).filter(**of_owners)
    attempts.filter(pruned_at=None).update(pruned_at=Now())
    attempts.update(raw_reply="", dropped=[], flags=[], error="")
    runs: Any = AutoDreamRun.objects.for_organization(organization).filter(**of_owners)
    runs.filter(~Q(notes=[])).update(notes=[])
    runs.exclude(error__in=["", ENDED]).update(error="erased")
