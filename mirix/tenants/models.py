"""Who is who: organizations, their clients and keys, the end users they serve, the people who review.

The organization is the border: every row of every app names one, and nothing crosses it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from mirix.ids import id_factory
from mirix.tenants.constraints import SameOwner, owner_key
from mirix.tenants.querysets import OwnedQuerySet, TenantQuerySet
from mirix.tenants.scope import outside_request_scope


class TenantModel(models.Model):
    """Base of every model whose rows belong to an organization; see `mirix.tenants.querysets`."""

    organization_key: ClassVar[str] = "organization_id"
    """The column that says which organization a row belongs to."""

    objects = TenantQuerySet.as_manager()

    class Meta:
        abstract = True

    def validate_unique(self, exclude: Collection[str] | None = None) -> None:
        """Look at the whole table, as the database does."""
        with outside_request_scope():
            super().validate_unique(exclude)

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        """Look at the whole table, as the database does."""
        with outside_request_scope():
            super().validate_constraints(exclude)


class Organization(TenantModel):
    """The tenant. Commands and people address it by its unique name, programs by its id."""

    organization_key = "id"

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("org"), editable=False)
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="organization_name_uniq")]

    def __str__(self) -> str:
        return self.name


class ReviewPolicy(models.TextChoices):
    """Whether a person must approve a proposal before agents see it."""

    REQUIRED = "required", "A person approves every change"
    AUTOMATIC = "automatic", "Changes without risk flags are published at once"


class DecidingRole(models.TextChoices):
    """The least role that decides about proposals and skills."""

    REVIEWER = "reviewer", "Reviewers and administrators"
    ADMINISTRATOR = "administrator", "Administrators alone"


MAX_DAYS = 36_500
MAX_SUPPORTING_SESSIONS = 100
INHERITED = (
    "review_policy",
    "min_supporting_sessions",
    "four_eyes",
    "deciding_role",
    "conversation_retention_days",
    "undistilled_retention_days",
    "raw_retention_days",
    "search_log_retention_days",
    "daily_token_budget",
    "redact_on_intake",
)
"""What an organization may leave to the installation, whose setting is `MIRIX_` and the name in capitals."""


def _days(what: str) -> models.PositiveIntegerField:
    return models.PositiveIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MAX_DAYS)], help_text=f"{what}; 0 = for ever."
    )


class OrganizationSettings(TenantModel):
    """What an organization chose for itself; an empty value of `INHERITED` is the installation's.

    Written by `mirix.tenants.preferences`; read through `selectors.effective`.
    """

    organization = models.OneToOneField(
        Organization, on_delete=models.CASCADE, primary_key=True, related_name="settings"
    )
    review_policy = models.CharField(max_length=16, choices=ReviewPolicy.choices, blank=True)
    min_supporting_sessions = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_SUPPORTING_SESSIONS)],
        help_text="Distinct sessions that must stand behind a learned change before it may be published.",
    )
    four_eyes = models.BooleanField(
        null=True,
        blank=True,
        help_text="Whether what a person wrote must be approved by somebody else.",
    )
    deciding_role = models.CharField(
        max_length=16,
        choices=DecidingRole.choices,
        blank=True,
        help_text="Who decides about proposals and skills.",
    )
    conversation_retention_days = _days("Days that distilled turns are kept")
    undistilled_retention_days = _days("Days that turns are kept that were never distilled")
    raw_retention_days = _days("Days that failed bodies and raw replies of models are kept")
    search_log_retention_days = _days("Days that search events are kept")
    daily_token_budget = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Tokens that models may use for the organization a day; 0 = no limit.",
    )
    redact_on_intake = models.BooleanField(
        null=True,
        blank=True,
        help_text="Whether passwords, keys and card numbers are taken out before a turn is stored.",
    )
    email_digest = models.BooleanField(
        default=False, help_text="Whether reviewers and administrators get an e-mail when something waits."
    )
    webhook_url = models.CharField(
        max_length=500, blank=True, help_text="Where a POST goes when something waits."
    )
    webhook_secret = models.CharField(max_length=64, blank=True, editable=False)
    """What signs the webhook's body. Kept as it is, since signing needs it; shown once, when it is made."""
    notified_at = models.DateTimeField(null=True, blank=True, editable=False)
    """When a notification was last made; one a day at most."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = verbose_name_plural = "organization settings"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(review_policy__in=["", *ReviewPolicy.values]),
                name="orgsettings_review_policy_valid",
            ),
            models.CheckConstraint(
                condition=models.Q(deciding_role__in=["", *DecidingRole.values]),
                name="orgsettings_deciding_role_valid",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    min_supporting_sessions__gte=1, min_supporting_sessions__lte=MAX_SUPPORTING_SESSIONS
                ),
                name="orgsettings_sessions_valid",
            ),
            models.CheckConstraint(
                condition=models.Q(
                    conversation_retention_days__lte=MAX_DAYS,
                    undistilled_retention_days__lte=MAX_DAYS,
                    raw_retention_days__lte=MAX_DAYS,
                    search_log_retention_days__lte=MAX_DAYS,
                ),
                name="orgsettings_days_valid",
            ),
            models.CheckConstraint(
                condition=models.Q(webhook_url="") | ~models.Q(webhook_secret=""),
                name="orgsettings_webhook_has_secret",
            ),
        ]

    def __str__(self) -> str:
        return f"Settings of {self.organization_id}"


class Client(TenantModel):
    """An application of an organization that calls the API."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("client"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="clients")
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organization", "name"], name="client_organization_name_uniq"),
            owner_key("client_organization_key", "organization"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def default_user_id(self) -> str:
        """The `user_id` that stands for this client's calls without one, as in the original."""
        return f"user-{self.id.removeprefix('client-')}"


class Permission(models.TextChoices):
    """What a key may do; each includes the ones before it."""

    READ = "read", "Read"
    WRITE = "write", "Read and write"
    ADMIN = "admin", "Read, write and administer"


class ApiKey(TenantModel):
    """A client's credential. Only the hash of the secret is stored; the key itself is shown once.

    A fast hash is right here: the secret has 256 random bits, so there is nothing to guess.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("key"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="api_keys")
    client = models.ForeignKey(Client, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=128, blank=True)
    prefix = models.CharField(max_length=16, editable=False)
    secret_hash = models.CharField(max_length=64, editable=False)
    permission = models.CharField(max_length=8, choices=Permission.choices, default=Permission.WRITE)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    replaced_by = models.OneToOneField(
        "self", on_delete=models.SET_NULL, null=True, blank=True, editable=False, related_name="replaces"
    )
    """The key that a rotation made in its stead; this one then expires when the overlap ends."""
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "API key"
        constraints = [
            models.UniqueConstraint(fields=["secret_hash"], name="apikey_secret_hash_uniq"),
            models.CheckConstraint(
                condition=models.Q(permission__in=Permission.values), name="apikey_permission_valid"
            ),
            owner_key("apikey_organization_key", "organization"),
            SameOwner(field="client", name="apikey_client_same_organization"),
            SameOwner(field="replaced_by", name="apikey_replaced_by_same_organization"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.permission})"

    @property
    def is_usable(self) -> bool:
        """True while the key is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())


class EndUser(TenantModel):
    """The person or agent whose memory it is; `user_id` is the caller's own id string."""

    id = models.CharField(primary_key=True, max_length=128, default=id_factory("enduser"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="end_users")
    user_id = models.CharField(max_length=256)
    name = models.CharField(max_length=256, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user_id"], name="enduser_organization_user_uniq"
            ),
            owner_key("enduser_organization_key", "organization"),
        ]

    def __str__(self) -> str:
        return self.user_id


class Role(models.TextChoices):
    """What a member may do in the admin and with a token."""

    REVIEWER = "reviewer", "Reviewer: reads and decides"
    OPERATOR = "operator", "Operator: reads, runs, replays and imports"
    ADMINISTRATOR = "administrator", "Administrator: everything in the organization"


class Membership(TenantModel):
    """A Django user's role in one organization."""

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("member"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.REVIEWER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organization", "user"], name="membership_organization_user_uniq"
            ),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_valid"),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class ActorKind(models.TextChoices):
    """Who did something: a person, a client's key, an operator at the command line, or mirix by itself."""

    USER = "user", "Person"
    KEY = "key", "API key"
    COMMAND = "command", "Command line"
    SYSTEM = "system", "System"


class AuditEvent(TenantModel):
    """One act of administration. Written by `mirix.tenants.audit` in the transaction of the act itself.

    Append-only, which the database enforces: a row never changes, and goes with its organization only. It
    names who acted by value, so that it stays readable when the person is gone. No secret, no personal text.
    What was done to a login that is a member of no organization belongs to none, and superusers read it.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("audit"), editable=False)
    # The database's own constraint cascades (see the migration): Django would delete row by row, and the
    # rule that rows stay would stop it.
    organization = models.ForeignKey(
        Organization,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="audit_events",
        null=True,
        blank=True,
    )
    actor_kind = models.CharField("kind of actor", max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=128, blank=True)
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=64)
    target_type = models.CharField(max_length=32)
    target_id = models.CharField(max_length=128)
    details = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="auditevent_org_recent_idx")
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(actor_kind__in=ActorKind.values), name="auditevent_actor_kind_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_id}"


class Channel(models.TextChoices):
    """The way that a notification goes."""

    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"


class NotificationState(models.TextChoices):
    """How far a notification has come."""

    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    FAILED = "failed", "Failed"


class Notification(TenantModel):
    """One message to an organization about what waits for it: counts, never a text of anybody.

    Written by `mirix.tenants.notifications`. While it waits, `next_attempt_at` says when it is tried next.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("notice"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="notifications")
    channel = models.CharField(max_length=8, choices=Channel.choices)
    counts = models.JSONField(default=dict)
    """How much waits by kind, at the time it was made."""
    state = models.CharField(
        max_length=8, choices=NotificationState.choices, default=NotificationState.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    recipient = models.CharField(max_length=256, blank=True)
    """Whom it reached, in words: how many people, or which host."""
    error = models.TextField(blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(state=NotificationState.WAITING),
                name="notification_due_idx",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(channel__in=Channel.values), name="notification_channel_valid"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=NotificationState.values), name="notification_state_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_channel_display()} of {self.created_at:%Y-%m-%d %H:%M}"


class TokenUsage(TenantModel):
    """What models used for an organization on one day of the installation's time zone.

    Written by `mirix.tenants.usage` as soon as an endpoint has answered, whatever becomes of the answer.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("usage"), editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="token_usage")
    day = models.DateField()
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    calls = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "day of token usage"
        verbose_name_plural = "token usage"
        constraints = [
            models.UniqueConstraint(fields=["organization", "day"], name="tokenusage_organization_day_uniq")
        ]

    def __str__(self) -> str:
        return f"{self.organization_id} on {self.day:%Y-%m-%d}"

    @property
    def tokens(self) -> int:
        """Prompts and answers together."""
        return self.prompt_tokens + self.completion_tokens


class ErasedKind(models.TextChoices):
    """What an erasure is of."""

    END_USER = "end_user", "End user"
    CLIENT = "client", "Client"
    SKILL = "skill", "Skill"


class ErasureReceipt(TenantModel):
    """That something was erased, and how much of it. Written by `mirix.tenants.erasure` with the erasure.

    Append-only, which the database enforces: a row never changes, and goes with its organization only. It
    holds no word of what was erased: `subject_id` is a random id of ours, `subject_hash` a keyed digest of
    the caller's own id, by which the receipt is found for who knows it. `counts` says how many rows went by
    table, `digests` the SHA-256 of their keys, so that a backup can be compared.
    """

    id = models.CharField(primary_key=True, max_length=64, default=id_factory("erasure"), editable=False)
    # The database's own constraint cascades, as with the audit trail.
    organization = models.ForeignKey(
        Organization, on_delete=models.DO_NOTHING, db_constraint=False, related_name="erasure_receipts"
    )
    kind = models.CharField(max_length=16, choices=ErasedKind.choices)
    subject_id = models.CharField(max_length=128)
    subject_hash = models.CharField(max_length=64)
    counts = models.JSONField(default=dict)
    digests = models.JSONField(default=dict)
    actor_kind = models.CharField("kind of actor", max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=128, blank=True)
    actor_name = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "erasure"
        indexes = [
            models.Index(fields=["organization", "-created_at", "id"], name="erasure_org_recent"),
            models.Index(fields=["organization", "subject_hash"], name="erasure_subject"),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=ErasedKind.values), name="erasure_kind_valid"),
            models.CheckConstraint(
                condition=models.Q(actor_kind__in=ActorKind.values), name="erasure_actor_kind_valid"
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def total(self) -> int:
        """How many rows went."""
        return sum(self.counts.values())


class Owned(TenantModel):
    """Base of every row that belongs to an owner. Tenant columns are never NULL."""

    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="+")
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()  # type: ignore[misc]  # a class variable, as everywhere

    class Meta:
        abstract = True
