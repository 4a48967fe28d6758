"""The project itself as an app: it holds the commands that belong to no room."""

from __future__ import annotations

from django.apps import AppConfig


class MirixConfig(AppConfig):
    """See the README."""

    name = "mirix"
