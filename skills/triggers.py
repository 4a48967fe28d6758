"""When a run begins: asked for through a door, or by itself once enough sessions are sealed.

A run that a worker will do is a queued row first, and its job carries nothing but the row's id. The row is
the truth: a job that was lost is made again from it by `recover`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.selectors import distillable
from mirix.collisions import points_at_nothing
from mirix.prepared import prepared_cursor
from mirix.queue import defer
from mirix.tenants import scope
from mirix.tenants.models import EndUser
from mirix.tenants.owners import Owner
from skills.models import AutoDreamRun, RunState, RunTrigger
from skills.runs import running, stale

RUN_DREAM = "skills.run_dream"
QUEUE = "dreams"
MAX_CLAIMS = 5
OPEN = Q(state=RunState.QUEUED) | Q(state=RunState.RUNNING)
HAS_OPEN_RUN = f"""
SELECT EXISTS (
    SELECT FROM "{AutoDreamRun._meta.db_table}"
    WHERE organization_id = %s AND end_user_id = %s AND state IN ('{RunState.QUEUED}', '{RunState.RUNNING}')
)
"""  # noqa: S608  (names of the model)
"""In SQL: it is asked at each sealing, and Django takes longer to build it than PostgreSQL to answer."""
REST_AFTER_FAILURE = timedelta(minutes=10)
"""How long an owner whose run failed is left alone by the automatic trigger."""


@transaction.atomic
def request_run(*, owner: Owner, trigger: str, parameters: dict[str, Any] | None = None) -> AutoDreamRun:
    """Return the owner's run that is going on or waits for a worker, else queue one with its job."""
    open_run = running(owner=owner) or _queued(owner)
    if open_run is not None:
        return open_run
    run = AutoDreamRun(
        organization=owner.organization,
        end_user=owner.end_user,
        trigger=RunTrigger(trigger),
        parameters=parameters or {},
    )
    # One waits at a time: of two callers at once, the second gets the first one's.
    AutoDreamRun.objects.bulk_create([run], ignore_conflicts=True)
    queued = _queued(owner)
    if queued is None or queued.pk != run.pk:
        return queued or request_run(owner=owner, trigger=trigger, parameters=parameters)
    _defer(run.pk)
    return run


def trigger_if_due(*, owner: Owner) -> AutoDreamRun | None:
    """Queue an automatic run when the owner has enough to learn from and none is open already."""
    # Asked first and alone: while a run is open, each session that is sealed would count all that wait.
    if _has_open_run(owner) or not _due_end_users(owner).exists():
        return None
    return request_automatic(owner=owner)


def _has_open_run(owner: Owner) -> bool:
    scope.require(owner.organization.pk)
    with prepared_cursor() as cursor:
        cursor.execute(HAS_OPEN_RUN, [owner.organization.pk, owner.end_user.pk])
        return bool(cursor.fetchone()[0])


def trigger_all_due() -> int:
    """Do the same for every owner; the safety net beside the trigger at sealing. Returns how many."""
    end_users = list(_due_end_users().select_related("organization"))
    owners = [Owner(organization=end_user.organization, end_user=end_user) for end_user in end_users]
    return sum(request_automatic(owner=owner) is not None for owner in owners)


def request_automatic(*, owner: Owner) -> AutoDreamRun | None:
    """Queue an automatic run; None for an end user who was erased since they were found."""
    try:
        return request_run(owner=owner, trigger=RunTrigger.AUTOMATIC, parameters=automatic_parameters())
    except IntegrityError as error:
        if not points_at_nothing(error):
            raise
        return None


def automatic_parameters() -> dict[str, Any]:
    """Return the parameters of a run that nobody asked for: as many sessions as it takes to trigger one."""
    return {"last_n_sessions": settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD}


def recover() -> int:
    """Take care of runs whose process or job was lost; returns how many there were.

    Runs of a worker get a new job, which takes them over. A command's is marked as what it is, for nobody
    would, and so is one that took `MAX_CLAIMS` workers with it.
    """
    ended = _end_silent(
        Q(trigger=RunTrigger.COMMAND), RunState.ABANDONED, "Its process gave no sign of life any more."
    ) + _end_silent(Q(fence__gte=MAX_CLAIMS), RunState.FAILED, f"{MAX_CLAIMS} workers died of it.")
    same_owner = AutoDreamRun.objects.filter(end_user=OuterRef("end_user"), state=RunState.RUNNING)
    waiting = Q(state=RunState.QUEUED) & ~Exists(same_owner.filter(~stale()))
    orphans = AutoDreamRun.objects.filter(waiting | stale()).exclude(trigger=RunTrigger.COMMAND)
    return ended + _defer_without_job(orphans)


def go_on(*, owner: Owner) -> None:
    """Queue what comes after a run of the owner: the one that waited for its end, else one that is due."""
    if not _defer_without_job(AutoDreamRun.objects.for_owner(owner).filter(state=RunState.QUEUED)):
        trigger_if_due(owner=owner)


def _defer_without_job(runs: QuerySet[AutoDreamRun]) -> int:
    """Make a job for each run that no job is going to start; return how many there were.

    A queued row commits together with its job. One without lost it, or its job found another run going on.
    """
    states = dict(runs.values_list("pk", "state"))
    jobs = ProcrastinateJob.objects.filter(
        task_name=RUN_DREAM, status__in=["todo", "doing"], args__run_id__in=list(states)
    )
    # A job in a worker's hands is about to claim a queued run; that of a stale one has died with its worker.
    started = {
        pk
        for pk, status in jobs.values_list("args__run_id", "status")
        if status == "todo" or states[pk] == RunState.QUEUED
    }
    lost = [pk for pk in states if pk not in started]
    for run_id in lost:
        _defer(run_id)
    return len(lost)


@transaction.atomic
def _end_silent(which: Q, state: RunState, error: str) -> int:
    """End stale runs that nobody takes over; one that is locked is just being claimed, or writes."""
    silent = AutoDreamRun.objects.filter(which & stale())
    dead = list(silent.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True))
    return AutoDreamRun.objects.filter(pk__in=dead).update(state=state, finished_at=Now(), error=error)


def _due_end_users(owner: Owner | None = None) -> QuerySet[EndUser]:
    """End users with enough sealed sessions, or with one that is due by itself; none with an open run.

    Due by itself is one whose rest is over, and one that has been idle for `MIRIX_SKILL_TRIGGER_IDLE_HOURS`
    without others to make up the number. Of every organization, or the one of `owner` alone.
    """
    threshold = settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD
    if threshold <= 0:
        return EndUser.objects.none()
    sessions, end_users = distillable(now=timezone.now()), EndUser.objects.all()
    if owner is not None:
        sessions = sessions.for_owner(owner)
        end_users = end_users.for_organization(owner.organization).filter(pk=owner.end_user.pk)
    due = Q(all__gte=threshold) | Q(rested__gt=0)
    if hours := settings.MIRIX_SKILL_TRIGGER_IDLE_HOURS:
        due |= Q(idle_since__lt=timezone.now() - timedelta(hours=hours))
    ready = (
        sessions.order_by()
        .values("end_user")
        .annotate(all=Count("pk"), rested=Count("next_attempt_at"), idle_since=Min("last_turn_at"))
        .filter(due)
    )
    own = AutoDreamRun.objects.filter(end_user=OuterRef("pk"))
    open_run = own.filter(OPEN)
    failed = own.filter(state=RunState.FAILED, finished_at__gt=Now() - REST_AFTER_FAILURE)
    return end_users.filter(~Exists(open_run), ~Exists(failed), pk__in=ready.values("end_user")).order_by(
        "pk"
    )


def _queued(owner: Owner) -> AutoDreamRun | None:
    return AutoDreamRun.objects.for_owner(owner).filter(state=RunState.QUEUED).first()


def _defer(run_id: str) -> None:
    defer(RUN_DREAM, queue=QUEUE, run_id=run_id)
