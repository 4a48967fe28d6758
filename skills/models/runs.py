"""Runs: one auto dream over an owner's sealed sessions, and each attempt to distil a session in it."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from conversations.models import Session
from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.models import Owned
from mirix.words import Words


class RunTrigger(models.TextChoices):
    """Which door started a run."""

    AUTOMATIC = "automatic", "Automatic"
    API = "api", "API"
    COMMAND = "command", "Command"
    ADMIN = "admin", "Admin"


class RunState(models.TextChoices):
    """Where a run stands.

    `interrupted` means that somebody stopped its process, which had no fault; the next run goes on.
    `abandoned` means that its process died and another run took over.
    """

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"
    ABANDONED = "abandoned", "Abandoned"


class AutoDreamRun(Owned):
    """One run: distil an owner's sealed sessions, then evolve the owner's skills.

    The running row is the lock: a partial unique constraint allows one per owner, whichever door starts
    it; one more may wait for a worker. `fence` rises with every claim of the row, and each write of a run
    checks it, so that a process that lost its run cannot write any more. `reserved_tokens` is what the calls
    on their way may use of the day's budget; it counts while the run lives.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("run"), editable=False)
    trigger = models.CharField(max_length=16, choices=RunTrigger.choices)
    parameters = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.QUEUED)
    fence = models.PositiveIntegerField(default=0)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict, blank=True)
    notes = models.JSONField(default=list, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    reserved_tokens = models.PositiveIntegerField(default=0, editable=False)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "run"
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "end_user"],
                condition=Q(state="running"),
                name="run_one_running_per_owner",
            ),
            models.UniqueConstraint(
                fields=["organization", "end_user"],
                condition=Q(state="queued"),
                name="run_one_queued_per_owner",
            ),
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="run_state_valid"),
            owner_key("run_owner_key"),
            SameOwner(field="end_user", name="run_end_user_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="run_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="run_recent"),
            models.Index(fields=["end_user", "-created_at"], name="run_end_user_recent"),
        ]

    def __str__(self) -> str:
        return self.id


class Verdict(models.TextChoices):
    """How an attempt ended: with experiences, with an explicit nothing, to be tried again, or given up."""

    OK = "ok", "Experiences"
    EMPTY = "empty", "Nothing worth keeping"
    RETRY = "retry", "To be tried again"
    DEAD = "dead", "Given up"


class DistillationAttempt(Owned):
    """One call of a distiller for one session, kept whatever came of it.

    `calls` counts the requests to an endpoint; `dropped` holds the parts of the reply that gave no lesson, as
    `{"reason", "text"}`, and `flags` what the transcript held that tries to steer its reader.

    What it said goes after its time (`pruned_at`): the raw reply with what was dropped of it, and of the
    error all but its kind.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("attempt"), editable=False)
    run = models.ForeignKey(AutoDreamRun, null=True, on_delete=models.SET_NULL, related_name="attempts")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="distillation_attempts")
    distiller = models.CharField(max_length=16)
    model = models.CharField(max_length=128, blank=True)
    prompt_version = models.CharField(max_length=32, blank=True)
    input_hash = models.CharField(max_length=64)
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()
    raw_reply = models.TextField(blank=True)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    dropped = models.JSONField(default=list, blank=True)
    flags = models.JSONField(default=list, blank=True)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    pruned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "attempt"
        constraints = [
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="attempt_verdict_valid"),
            owner_key("attempt_owner_key"),
            SameOwner(field="session", name="attempt_session_same_owner"),
            SameOwner(field="run", name="attempt_run_same_owner"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="attempt_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="attempt_recent"),
            models.Index(
                fields=["organization", "created_at"],
                include=["prompt_tokens", "completion_tokens"],
                name="attempt_tokens_of_day",
            ),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(pruned_at__isnull=True) & ~Q(raw_reply="", error="", dropped=[]),
                name="attempt_texts_kept",
            ),
        ]

    def __str__(self) -> str:
        return self.id


class ProposerCall(Owned):
    """One question to a proposer's model about the lessons of one topic, kept whatever came of it.

    `experience_ids` names the lessons that it showed; `refused` holds the operations of the answer that were
    not written, as `{"reason", "text"}`. One without an answer by the endpoint's fault is held against no
    topic. What it said goes after its time (`pruned_at`), as with an attempt.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("call"), editable=False)
    run = models.ForeignKey(AutoDreamRun, null=True, on_delete=models.SET_NULL, related_name="proposer_calls")
    topic = models.CharField(max_length=160)
    model = models.CharField(max_length=128)
    prompt_version = models.CharField(max_length=32)
    input_hash = models.CharField(max_length=64)
    experience_ids = models.JSONField(default=list)
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    is_endpoints_fault = models.BooleanField(default=False, editable=False)
    operations = models.PositiveIntegerField(default=0)
    refused = models.JSONField(default=list, blank=True)
    raw_reply = models.TextField(blank=True)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    duration_ms = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)
    pruned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "proposer call"
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=Verdict.values), name="proposercall_verdict_valid"
            ),
            SameOwner(field="end_user", name="proposercall_end_user_same_organization"),
            SameOwner(field="run", name="proposercall_run_same_owner"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="proposercall_recent"),
            models.Index(fields=["-created_at", "id"], name="proposercall_recent_of_all"),
            models.Index(
                fields=["organization", "created_at"],
                include=["prompt_tokens", "completion_tokens"],
                name="proposercall_tokens_of_day",
            ),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(pruned_at__isnull=True) & ~Q(raw_reply="", refused=[]),
                name="proposercall_texts_kept",
            ),
            GinIndex(Words("topic"), name="proposercall_words"),
        ]

    def __str__(self) -> str:
        return self.id
