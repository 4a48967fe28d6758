"""The people of an organization, who review, operate and administer."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from mirix.ids import id_factory
from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.organizations import Organization


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
