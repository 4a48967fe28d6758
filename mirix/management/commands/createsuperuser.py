"""Django's command, which here leaves a trail."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands.createsuperuser import Command as CreateSuperuser
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_save

from mirix.commands import MigrationsRequired
from mirix.tenants.audit import Actor
from mirix.tenants.logins import record_new_login


class Command(MigrationsRequired, CreateSuperuser):
    """Make a login that may do everything."""

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, and note who did; Django's own does not say which one it made."""

        def note(instance: User, **_: Any) -> None:
            record_new_login(user=instance, actor=Actor.operator())

        post_save.connect(note, sender=User)
        try:
            super().handle(*args, **options)
        finally:
            post_save.disconnect(note, sender=User)
