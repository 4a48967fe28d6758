"""The app of what was learned: experiences, skills, revisions, runs."""

from __future__ import annotations

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    """See `skills.models`."""

    name = "skills"
    default_auto_field = "django.db.models.BigAutoField"
