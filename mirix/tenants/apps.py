"""The app of organizations, clients, keys, end users and members."""

from __future__ import annotations

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """See `mirix.tenants.models`."""

    name = "mirix.tenants"
    label = "tenants"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have erasures be counted."""
        from mirix import measures
        from mirix.tenants.measures import MEASURES

        measures.register(*MEASURES)
