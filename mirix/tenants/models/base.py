"""What every row of a tenant has in common: it names an organization, and maybe one of its end users.

The organization is the border: every row of every app names one, and nothing crosses it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from django.db import models

from mirix.tenants.querysets import TenantQuerySet
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
