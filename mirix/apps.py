"""The project itself as an app: it holds the commands that belong to no room."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class MirixConfig(AppConfig):
    """See the README."""

    name = "mirix"

    def ready(self) -> None:
        """Register what other libraries look up by import."""
        import_module("mirix.api.schema")
