"""The app of what came in: intake records, sessions, turns."""

from __future__ import annotations

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    """See `conversations.models`."""

    name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have people be told of what was given up, and all be pruned in time, erased and measured."""
        from conversations.erasure import ERASER
        from conversations.measures import MEASURES
        from conversations.pruning import register_steps
        from conversations.selectors import dead_sessions_of, failed_intake_of
        from mirix import measures
        from mirix.tenants import erasure
        from mirix.tenants.counters import Counter, register

        register(
            Counter(
                kind="dead_sessions",
                one="session given up",
                many="sessions given up",
                count=lambda organization: dead_sessions_of(organization=organization).count(),
                page="admin:conversations_session_changelist",
                query="state__exact=dead",
            )
        )
        register(
            Counter(
                kind="failed_intake",
                one="request not stored",
                many="requests not stored",
                count=lambda organization: failed_intake_of(organization=organization).count(),
                page="admin:conversations_intakerecord_changelist",
                query="state__exact=failed",
            )
        )
        register_steps()
        measures.register(*MEASURES)
        erasure.register(ERASER)
