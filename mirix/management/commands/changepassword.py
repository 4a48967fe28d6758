"""Django's command, which here leaves a trail."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands.changepassword import Command as ChangePassword
from django.contrib.auth.models import User
from django.db import transaction

from mirix.commands import MigrationsRequired
from mirix.tenants.audit import Actor
from mirix.tenants.logins import record_changes


class Command(MigrationsRequired, ChangePassword):
    """Ask for a new password of a login."""

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Set it, and note who did."""
        before = User.objects.filter(username=options["username"]).first()
        said = super().handle(*args, **options)
        if before is not None:
            record_changes(before=before, actor=Actor.operator())
        return said
