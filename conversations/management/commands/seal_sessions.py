"""`seal_sessions`: seal what is complete, without waiting for the worker's next look."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from conversations.sealing import seal_sessions
from mirix.commands import DataCommand
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_organization, find_owner_of


class Command(DataCommand):
    """Seal every session that is idle for long enough or followed by a newer one."""

    help = "Seal sessions that are complete: idle for MIRIX_SESSION_IDLE_MINUTES, or followed by a newer one."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--organization` and `--user`."""
        parser.add_argument("--organization", metavar="NAME", help="with --user: one end user's only")
        parser.add_argument("--user", metavar="USER_ID", help="the end user's own id")

    def handle(self, *args: Any, **options: Any) -> None:
        """Seal, and say how many."""
        owner = self._owner(options)
        sealed = seal_sessions(owner=owner)
        self.answer({"sealed": sealed}, f"{sealed} session{'' if sealed == 1 else 's'} sealed.")

    @staticmethod
    def _owner(options: dict[str, Any]) -> Owner | None:
        name, user_id = options["organization"], options["user"]
        if name is None and user_id is None:
            return None
        if name is None or user_id is None:
            raise CommandError(
                "--organization and --user go together; with neither, every owner's are sealed"
            )
        organization = find_organization(name=name)
        owner = find_owner_of(organization=organization, user_id=user_id) if organization else None
        if owner is None:
            raise CommandError(f"unknown user {user_id!r} in organization {name!r}")
        return owner
