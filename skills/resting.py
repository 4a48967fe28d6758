"""Sessions that rest: after a failure, or while nobody can be asked about them.

A session's own failures make it rest longer each time, until it is given up. Where the endpoint is at fault,
as when it fails at one session of a run after the other, or the day's tokens are used up, none is: all that
wait for the owner's next run rest until it is worth trying again, and the run's notes say why.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone

from conversations.models import Session, SessionState
from conversations.selectors import distillable
from mirix.tenants.owners import Owner
from mirix.text import clean_text
from skills.distillation.types import DistillerReply
from skills.models import AutoDreamRun, DistillationAttempt, Verdict
from skills.runs import RunClaim

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=6)
ENDPOINT_PAUSE = timedelta(minutes=5)
"""How long an endpoint that failed is left alone where it does not say."""


def pause_after(attempts: int) -> timedelta:
    """Return how long a session rests after so many failed attempts: 1, 4, 16 … minutes, at most 6 hours."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 4 ** min(attempts - 1, 10))


def asked_for(reply: DistillerReply) -> timedelta:
    """Return how long the endpoint asked to be left alone, as far as we go along with it."""
    seconds = min(reply.retry_after or 0.0, LONGEST_PAUSE.total_seconds())
    return timedelta(seconds=max(0.0, seconds))


def rest_of(reply: DistillerReply) -> timedelta:
    """Return how long everything rests after a failure that is the endpoint's fault."""
    return asked_for(reply) or ENDPOINT_PAUSE


def retry_failed(*, owner: Owner) -> int:
    """Make the owner's sessions that rest, or were given up, due now; return how many.

    For when the cause is gone. Each has all of its attempts again.
    """
    resting = Q(attempts__gt=0) | Q(next_attempt_at__isnull=False)
    failed = Q(state=SessionState.DEAD) | Q(resting, state=SessionState.SEALED)
    return (
        Session.objects.for_owner(owner)
        .filter(failed)
        .update(state=SessionState.SEALED, attempts=0, next_attempt_at=None)
    )


def rest_all(*, claim: RunClaim, until: datetime, reason: str, besides: Collection[str] = ()) -> int:
    """Let every session that waits for the owner's next run rest until then; return how many.

    `besides` are those on their way to the distiller. The sessions and the run's notes say why. Raises
    `LostRun`.
    """
    waiting = distillable(now=timezone.now()).for_owner(claim.owner).exclude(pk__in=besides)
    return _rest(claim, waiting, until, reason)


def rest(*, claim: RunClaim, session_pk: str, until: datetime, reason: str) -> int:
    """Let one session rest until then, as `rest_all` does; return 1, or 0 where it waits no more."""
    waiting = distillable(now=timezone.now()).for_owner(claim.owner).filter(pk=session_pk)
    return _rest(claim, waiting, until, reason)


@transaction.atomic
def count_no_failure(*, claim: RunClaim, session_pks: Collection[str], pause: timedelta) -> None:
    """Take back that these sessions' attempts of the run count: the endpoint failed at every one of them.

    They rest for that long at least. Raises `LostRun`.
    """
    run = claim.hold()
    sessions = Session.objects.for_owner(claim.owner).filter(
        pk__in=session_pks, state__in=(SessionState.SEALED, SessionState.DEAD), attempts__gt=0
    )
    locked = list(
        sessions.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True)
    )
    until = timezone.now() + pause
    Session.objects.filter(pk__in=locked).update(
        state=SessionState.SEALED,
        attempts=F("attempts") - 1,
        next_attempt_at=Greatest(F("next_attempt_at"), until),
    )
    DistillationAttempt.objects.filter(run=run, session__in=locked, verdict=Verdict.DEAD).update(
        verdict=Verdict.RETRY
    )
    failed = len(session_pks)
    reason = (
        f"The model's endpoint failed at {failed} sessions and answered about none, so no attempt counts."
    )
    note = {"reason": reason, "deferred": 0, "until": until.isoformat(timespec="seconds")}
    AutoDreamRun.objects.filter(pk=run.pk).update(notes=[*run.notes, note])


@transaction.atomic
def _rest(claim: RunClaim, waiting: QuerySet[Session], until: datetime, reason: str) -> int:
    run = claim.hold()
    locked = waiting.select_for_update(no_key=True, of=("self",)).order_by("pk").values_list("pk", flat=True)
    resting = Session.objects.filter(pk__in=list(locked)).update(
        next_attempt_at=until, last_error=clean_text(reason)
    )
    note = {"reason": reason, "deferred": resting, "until": until.isoformat(timespec="seconds")}
    AutoDreamRun.objects.filter(pk=run.pk).update(notes=[*run.notes, note])
    return resting
