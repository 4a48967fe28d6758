"""What models used for an organization."""

from __future__ import annotations

from django.db import models

from mirix.ids import id_factory
from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.organizations import Organization


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
