"""The claim on a run: one running run per owner, and no write by a process that lost its run.

The running row of `AutoDreamRun` is the lock, through its partial unique constraint, whichever door
starts the run. Its process proves that it lives by a heartbeat. A row whose heartbeat is older than
`MIRIX_WORKER_STALLED_SECONDS` is free to be taken over: by its own job, tried again, under a higher fence, or
by another run of the owner, which marks it `abandoned`. The process that lost it may be only asleep, as on a
closed laptop, so every write of a run begins with `RunClaim.hold`, which refuses an outdated fence.

All times are the database's, so that the clocks of several hosts need not agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Now

from mirix.collisions import through_collisions
from mirix.outages import through_outage
from mirix.tenants.owners import Owner
from skills.heartbeat import Heartbeat
from skills.models import AutoDreamRun, DistillationAttempt, ProposerCall, RunState, RunTrigger

CLAIM_TRIES = 3
GLANCE_SECONDS = 0.3
T = TypeVar("T")


class OwnerBusy(Exception):
    """Another run of the owner is going on; `run` is that one."""

    def __init__(self, run: AutoDreamRun) -> None:
        super().__init__(f"{run.pk} of this owner is {run.state}.")
        self.run = run


class RunOver(Exception):
    """The run to be claimed has ended; `run` says how."""

    def __init__(self, run: AutoDreamRun) -> None:
        super().__init__(f"{run.pk} is {run.state}.")
        self.run = run


class LostRun(Exception):
    """The run belongs to another process by now, or has ended: this one must not write any more."""


@dataclass(frozen=True, kw_only=True)
class RunClaim:
    """The right to write for one run, valid while the row is `running` under this fence."""

    owner: Owner
    run_id: str
    fence: int

    def hold(self) -> AutoDreamRun:
        """Lock the run's row until the transaction ends and return it; the first step of every write.

        Raises `LostRun` when the claim is void. Call inside `atomic`. A process put to sleep within the
        transaction would keep the lock, so the server is told to end one that idles for too long.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('idle_in_transaction_session_timeout', %s, true)",
                [str(int(stalled_after().total_seconds() * 1000))],
            )
        run = self._mine().select_for_update(no_key=True).first()
        if run is None:
            raise LostRun(f"{self.run_id} was taken over or ended elsewhere.")
        return run

    def beat(self) -> bool:
        """Record that this process lives; false when the claim is void."""
        return self._mine().update(heartbeat_at=Now()) == 1

    def lasting(self, step: Callable[[], T]) -> T:
        """Return what `step` returns; it is done again where something came between.

        A restart of the database, or another transaction, such as an erasure.

        Outside of transactions. It takes as long as it may without the run being taken over.
        """
        patience = stalled_after().total_seconds()
        return through_outage(lambda: through_collisions(step), patience=patience)

    def beating(self) -> AbstractContextManager[Heartbeat]:
        """Beat while the block runs, so that a slow step does not look dead."""
        interval = stalled_after().total_seconds() / 6
        return Heartbeat(self.beat, interval=interval, name=f"heartbeat of {self.run_id}").watched()

    def let_go(self) -> None:
        """Leave the run to whoever claims it next, at once and without waiting for it to look dead."""
        self._mine().update(heartbeat_at=None)

    def end(self, state: RunState, **fields: Any) -> AutoDreamRun:
        """Write the run's last word: its final `state` and whatever `fields` belong to it."""
        with transaction.atomic():
            self.hold()
            self._mine().update(state=state, finished_at=Now(), **fields)
        return AutoDreamRun.objects.get(pk=self.run_id)

    def _mine(self) -> Any:
        return AutoDreamRun.objects.filter(pk=self.run_id, state=RunState.RUNNING, fence=self.fence)


def claim(*, owner: Owner, trigger: str, parameters: dict[str, Any] | None = None) -> RunClaim:
    """Start a run of `owner` in this process.

    Takes the place of a stale one; raises `OwnerBusy` when another is going on.
    """
    for _ in range(CLAIM_TRIES):
        run = AutoDreamRun(
            organization=owner.organization,
            end_user=owner.end_user,
            trigger=RunTrigger(trigger),
            parameters=parameters or {},
            state=RunState.RUNNING,
            fence=1,
            heartbeat_at=Now(),
            started_at=Now(),
        )
        # The row either goes in whole or gives way to the owner's running one.
        AutoDreamRun.objects.bulk_create([run], ignore_conflicts=True)
        if AutoDreamRun.objects.filter(pk=run.pk).exists():
            return RunClaim(owner=owner, run_id=run.pk, fence=1)
        _give_way_or_refuse(owner)
    raise OwnerBusy(AutoDreamRun.objects.for_owner(owner).latest("created_at"))


def claim_when_free(
    *,
    owner: Owner,
    trigger: str,
    parameters: dict[str, Any] | None = None,
    patience: float,
    tell: Callable[[AutoDreamRun], None] = lambda run: None,
) -> RunClaim:
    """Start a run of `owner` once no other is going on, after at most `patience` seconds of waiting.

    `tell` hears of each run that is waited for, once. Raises `OwnerBusy` when the patience is at an end.
    """
    deadline = time.monotonic() + patience
    told: set[str] = set()
    while True:
        try:
            return claim(owner=owner, trigger=trigger, parameters=parameters)
        except OwnerBusy as busy:
            if time.monotonic() >= deadline:
                raise
            if busy.run.pk not in told:
                told.add(busy.run.pk)
                tell(busy.run)
        time.sleep(GLANCE_SECONDS)


def claim_run(*, run_id: str) -> RunClaim:
    """Claim a queued run, or take over the same run from a process that died.

    Raises `OwnerBusy` when this run or another one of its owner is going on, `RunOver` when it has ended,
    and `AutoDreamRun.DoesNotExist` when it was erased.
    """
    run = AutoDreamRun.objects.select_related("organization", "end_user").get(pk=run_id)
    owner = Owner(organization=run.organization, end_user=run.end_user)
    for _ in range(CLAIM_TRIES):
        try:
            with transaction.atomic():
                fence = _raise_fence(run_id)
        except IntegrityError:  # another row of the owner is `running`
            _give_way_or_refuse(owner)
            continue
        if fence is not None:
            return RunClaim(owner=owner, run_id=run_id, fence=fence)
        break
    run = AutoDreamRun.objects.get(pk=run_id)
    if run.state in {RunState.QUEUED, RunState.RUNNING}:
        raise OwnerBusy(run)
    raise RunOver(run)


def running(*, owner: Owner) -> AutoDreamRun | None:
    """Return the owner's run that is going on; one without heartbeat does not count."""
    return AutoDreamRun.objects.for_owner(owner).filter(~stale(), state=RunState.RUNNING).first()


def stale() -> Q:
    """Return the condition for running rows whose process has given no sign of life for too long."""
    silent = Q(heartbeat_at__isnull=True) | Q(heartbeat_at__lt=Now() - stalled_after())
    return Q(state=RunState.RUNNING) & silent


def stalled_after() -> timedelta:
    """Return how old a heartbeat may become before its process counts as dead."""
    return timedelta(seconds=settings.MIRIX_WORKER_STALLED_SECONDS)


def _raise_fence(run_id: str) -> int | None:
    """Make a queued or stale row `running` under the next fence; None when it is neither."""
    claimable = Q(state=RunState.QUEUED) | stale()
    # A row that is locked is being written or claimed at this moment: it is not free.
    run = (
        AutoDreamRun.objects.filter(claimable, pk=run_id)
        .select_for_update(no_key=True, skip_locked=True)
        .first()
    )
    if run is None:
        return None
    AutoDreamRun.objects.filter(pk=run_id).update(
        state=RunState.RUNNING,
        fence=F("fence") + 1,
        reserved_tokens=0,
        heartbeat_at=Now(),
        started_at=Coalesce("started_at", Now()),
    )
    return run.fence + 1


def tokens_of(run_id: str) -> int:
    """Return the tokens that a run used, to distil and to propose."""
    used: int = 0
    for asked in (DistillationAttempt, ProposerCall):
        used += asked.objects.filter(run=run_id).aggregate(
            tokens=Sum(F("prompt_tokens") + F("completion_tokens"), default=0)
        )["tokens"]
    return used


def _give_way_or_refuse(owner: Owner) -> None:
    """Abandon the owner's running row when it is stale; raise `OwnerBusy` when it lives."""
    with transaction.atomic():
        dead = list(
            AutoDreamRun.objects.for_owner(owner)
            .filter(stale())
            .select_for_update(no_key=True, skip_locked=True)
            .values_list("pk", flat=True)
        )
        AutoDreamRun.objects.filter(pk__in=dead).update(
            state=RunState.ABANDONED,
            finished_at=Now(),
            error="Its process gave no sign of life any more; another run took its place.",
        )
        for pk in dead:
            AutoDreamRun.objects.filter(pk=pk).update(tokens=tokens_of(pk))
    if not dead:
        other = AutoDreamRun.objects.for_owner(owner).filter(state=RunState.RUNNING).first()
        if other is not None:
            raise OwnerBusy(other)
