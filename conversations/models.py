"""What came in: accepted requests, the sessions they belong to, and the turns of those sessions."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from conversations.fields import VerbatimJSONField
from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.models import Client, Owned

SESSION_ID_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"


class SessionTag(models.TextChoices):
    """What kind of talk a session is; a conversation is stored and never distilled."""

    TASK = "task", "Task"
    CONVERSATION = "conversation", "Conversation"


class History(models.TextChoices):
    """What the messages of a request are: only what is new, or the session from its start."""

    DETECT = "", "Found out by comparing"
    DELTA = "delta", "Only what is new"
    FULL = "full", "The session from its start"


class IntakeState(models.TextChoices):
    """How far an accepted request has come."""

    QUEUED = "queued", "Queued"
    STORED = "stored", "Stored"
    PARTIAL = "partial", "Partly stored"
    FAILED = "failed", "Failed"


class IntakeRecord(Owned):
    """One accepted `/memory/add*` request or imported record.

    Written by `conversations.intake` before anything else happens with the messages. The body is dropped
    once its turns are stored and kept while anything failed, so that it can be replayed. `report` accounts
    for every message; `answer` is what the first request with an idempotency key was told. A body that was
    kept for too long is dropped by `conversations.retention`, at `body_pruned_at`.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("intake"), editable=False)
    # When it was accepted, which is known before it is inserted: turns are stored first where a caller waits.
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+")
    session_id = models.CharField(max_length=64, blank=True)
    session_tag = models.CharField(max_length=16, choices=SessionTag.choices, blank=True)
    filter_tags = models.JSONField(default=dict, blank=True)
    history = models.CharField(max_length=8, choices=History.choices, blank=True, default=History.DETECT)
    occurred_at = models.DateTimeField(null=True, blank=True)
    body = VerbatimJSONField(null=True, blank=True)
    # Of requests with an idempotency key.
    body_hash = models.CharField(max_length=64, blank=True)
    message_count = models.PositiveIntegerField()
    idempotency_key = models.CharField(max_length=255, blank=True)
    state = models.CharField(max_length=8, choices=IntakeState.choices, default=IntakeState.QUEUED)
    report = models.JSONField(null=True, blank=True)
    answer = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    stored_at = models.DateTimeField(null=True, blank=True)
    body_pruned_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["client", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="intake_client_idempotency_uniq",
            ),
            models.CheckConstraint(condition=Q(state__in=IntakeState.values), name="intake_state_valid"),
            owner_key("intake_owner_key"),
            SameOwner(field="end_user", name="intake_end_user_same_organization"),
            SameOwner(field="client", name="intake_client_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="intake_organization_recent"),
            models.Index(fields=["end_user", "-created_at", "id"], name="intake_end_user_recent"),
            models.Index(fields=["-created_at", "id"], name="intake_recent"),
            models.Index(
                fields=["session_id"], opclasses=["varchar_pattern_ops"], name="intake_session_id_prefix"
            ),
            models.Index(fields=["created_at"], condition=~Q(state="stored"), name="intake_unfinished"),
            models.Index(
                fields=["end_user", "session_id", "created_at", "id"],
                condition=Q(state="queued"),
                name="intake_session_queued",
            ),
            models.Index(
                fields=["organization", "created_at"],
                condition=Q(body__isnull=False),
                name="intake_body_kept",
            ),
        ]

    def __str__(self) -> str:
        return self.id


class SessionState(models.TextChoices):
    """Where a session stands between the first turn and the lessons drawn from it."""

    OPEN = "open", "Open"
    SEALED = "sealed", "Sealed"
    DISTILLED = "distilled", "Distilled"
    DEAD = "dead", "Dead"


class Session(Owned):
    """One piece of work, keyed by the caller's `session_id` within an owner.

    `distilled_through` is the sequence number of the last turn a distillation has read, or that was pruned
    unread; turns after it are still to be learned from. The times of its first and last turn are those at
    which their requests were accepted. `history_hash` chains the content hashes of all turns ever stored, so
    that a request which repeats the session from its start is recognized even after turns were pruned.

    `turn_count` turns are there; those up to `pruned_through` are gone for their age, and some after it may
    be, where a turn before them had to stay. `emptied_at` is when the last one went, if nothing else refers
    to the row: then it goes too after some time.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("session"), editable=False)
    session_id = models.CharField(max_length=64)
    tag = models.CharField(max_length=16, choices=SessionTag.choices, default=SessionTag.TASK)
    filter_tags = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=16, choices=SessionState.choices, default=SessionState.OPEN)
    turn_count = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0)
    history_hash = models.CharField(max_length=64, blank=True)
    first_turn_at = models.DateTimeField(null=True, blank=True)
    last_turn_at = models.DateTimeField(null=True, blank=True)
    reopened_at = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    sealed_at = models.DateTimeField(null=True, blank=True)
    distilled_at = models.DateTimeField(null=True, blank=True)
    distilled_through = models.PositiveIntegerField(default=0)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    pruned_through = models.PositiveIntegerField(default=0)
    pruned_at = models.DateTimeField(null=True, blank=True)
    emptied_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "end_user", "session_id"], name="session_owner_session_uniq"
            ),
            models.CheckConstraint(
                condition=Q(session_id__regex=SESSION_ID_PATTERN), name="session_session_id_valid"
            ),
            models.CheckConstraint(condition=Q(state__in=SessionState.values), name="session_state_valid"),
            models.CheckConstraint(condition=Q(tag__in=SessionTag.values), name="session_tag_valid"),
            owner_key("session_owner_key"),
            SameOwner(field="end_user", name="session_end_user_same_organization"),
        ]
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="session_organization_recent"),
            models.Index(fields=["-created_at", "id"], name="session_recent"),
            models.Index(
                fields=["session_id"], opclasses=["varchar_pattern_ops"], name="session_session_id_prefix"
            ),
            models.Index(
                fields=["organization", "state", "-created_at", "id"], name="session_organization_state"
            ),
            models.Index(fields=["end_user", "state", "first_turn_at", "id"], name="session_end_user_state"),
            models.Index(fields=["last_turn_at"], condition=Q(state="open"), name="session_open_last_turn"),
            models.Index(
                fields=["organization", "first_turn_at"],
                condition=Q(pruned_through__lt=F("distilled_through")),
                name="session_distilled_kept",
            ),
            models.Index(
                fields=["organization", "first_turn_at"],
                condition=Q(distilled_through__lt=F("last_seq")),
                name="session_undistilled_kept",
            ),
            models.Index(
                fields=["organization", "emptied_at"],
                condition=Q(emptied_at__isnull=False),
                name="session_emptied",
            ),
        ]

    def __str__(self) -> str:
        return self.session_id


class TurnRole(models.TextChoices):
    """Who speaks in a turn."""

    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"
    TOOL = "tool", "Tool"


class ConversationMessage(Owned):
    """One turn of a session, as the agent's transcript had it; never edited after it is stored.

    `content` is what people and models read, tool calls and the tool's name included; `tool_calls` holds
    the same calls as data, a list of `{"id", "name", "arguments"}`, for the rules that compare them. All
    turns of a message carry its id, if it has one; `part` numbers them, and those by which it grew later.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="+")
    intake = models.ForeignKey(IntakeRecord, null=True, on_delete=models.SET_NULL, related_name="turns")
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=TurnRole.choices)
    content = models.TextField()
    content_hash = models.CharField(max_length=64)
    tool_calls = models.JSONField(default=list, blank=True)
    tool_name = models.CharField(max_length=256, blank=True)
    tool_call_id = models.CharField(max_length=256, blank=True)
    is_error = models.BooleanField(default=False)
    truncated = models.BooleanField(default=False)
    message_id = models.CharField(max_length=256, blank=True)
    part = models.PositiveIntegerField(default=0)
    occurred_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "turn"
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="turn_session_seq_uniq"),
            models.UniqueConstraint(
                fields=["session", "message_id", "part"],
                condition=~Q(message_id=""),
                name="turn_session_message_part_uniq",
            ),
            models.CheckConstraint(condition=Q(role__in=TurnRole.values), name="turn_role_valid"),
            SameOwner(field="session", name="turn_session_same_owner"),
            SameOwner(field="intake", name="turn_intake_same_owner"),
            SameOwner(field="client", name="turn_client_same_organization"),
        ]
        indexes = [
            models.Index(fields=["session", "seq"], condition=Q(is_error=True), name="turn_session_errors"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """The id that the API shows, `convmsg-<n>`."""
        return f"convmsg-{self.pk}"
