"""The app of what came in: intake records, sessions, turns."""

from __future__ import annotations

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """See `conversations.models`."""

    name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"
