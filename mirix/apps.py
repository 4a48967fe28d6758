"""The project itself as an app: it holds the commands that belong to no room."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.db.backends.signals import connection_created

from mirix import jobs
from mirix.checks import refuse_original
from mirix.measures import register


class MirixConfig(AppConfig):
    """See the README."""

    name = "mirix"
    default = True

    def ready(self) -> None:
        """Guard every connection, have the queue measured, and register what is looked up by import."""
        connection_created.connect(refuse_original)
        import_module("mirix.api.schema")
        import_module("mirix.api.checks")
        import_module("mirix.llm.checks")
        register(*jobs.MEASURES)


class AdminConfig(admin_apps.AdminConfig):
    """Django's admin with our own site."""

    default_site = "mirix.admin_site.AdminSite"
    default = False
