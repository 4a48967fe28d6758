"""Organizations, and what each chose for itself."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from mirix.ids import id_factory
from mirix.tenants.models.base import TenantModel


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
