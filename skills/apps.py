"""The app of what was learned: experiences, skills, revisions, runs."""

from __future__ import annotations

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    """See `skills.models`."""

    name = "skills"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have a run start by itself once enough sessions of an owner are sealed."""
        from conversations.sealing import on_sealed
        from skills.triggers import trigger_if_due

        on_sealed(lambda owner: trigger_if_due(owner=owner))
