"""The project itself as an app: it holds the commands that belong to no room."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.db.backends.signals import connection_created

from mirix.checks import refuse_original


class MirixConfig(AppConfig):
    """See the README."""

    name = "mirix"
    default = True

    def ready(self) -> None:
        """Guard every connection, and register what other libraries look up by import."""
        connection_created.connect(refuse_original)
        import_module("mirix.api.schema")
        import_module("mirix.api.checks")
        import_module("mirix.llm.checks")


class AdminConfig(admin_apps.AdminConfig):
    """Django's admin with our own site."""

    default_site = "mirix.admin_base.AdminSite"
    default = False
