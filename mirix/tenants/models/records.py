"""What stays on record of acts in an organization, by the database's own rule: no row is ever changed."""

from __future__ import annotations

from django.db import models

from mirix.ids import id_factory
from mirix.shapes import as_numbers
from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.organizations import Organization


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
            models.Index(fields=["organization", "-created_at", "id"], name="auditevent_org_recent_idx"),
            models.Index(fields=["-created_at", "id"], name="auditevent_recent"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(actor_kind__in=ActorKind.values), name="auditevent_actor_kind_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target_id}"


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
        return sum(as_numbers(self.counts).values())
