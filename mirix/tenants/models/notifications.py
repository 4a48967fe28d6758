"""Messages to an organization about what waits for it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from mirix.ids import id_factory
from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.organizations import Organization


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
