"""The project itself as an app: it holds the commands that belong to no room."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps


class MirixConfig(AppConfig):
    """See the README."""

    name = "mirix"
    default = True

    def ready(self) -> None:
        """Register what other libraries look up by import."""
        import_module("mirix.api.schema")
        import_module("mirix.api.checks")


class AdminConfig(admin_apps.AdminConfig):
    """Django's admin with our own site."""

    default_site = "mirix.admin_base.AdminSite"
    default = False
