"""What operators do with runs by hand: each act with its event in the audit trail."""

from __future__ import annotations

from django.db import transaction

from mirix.tenants import audit
from mirix.tenants.audit import Act, Actor
from mirix.tenants.owners import Owner
from skills.dream import DEFAULT_SESSIONS
from skills.models import AutoDreamRun, RunTrigger
from skills.triggers import OPEN, request_run


@transaction.atomic
def start_run(*, owner: Owner, actor: Actor) -> tuple[AutoDreamRun, bool]:
    """Have a worker learn from the owner's sealed sessions; return the run, and whether it is a new one.

    One that goes on or waits already is that one, and leaves no event.
    """
    known = set(AutoDreamRun.objects.for_owner(owner).filter(OPEN).values_list("pk", flat=True))
    run = request_run(owner=owner, trigger=RunTrigger.ADMIN, parameters={"last_n_sessions": DEFAULT_SESSIONS})
    is_new = run.pk not in known
    if is_new:
        audit.record(organization=owner.organization, actor=actor, action=Act.RUN_STARTED, target=run)
    return run, is_new
