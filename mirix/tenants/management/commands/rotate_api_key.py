"""Rotate an API key; the only time the new one is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from mirix.commands import whole
from mirix.tenants.audit import Actor
from mirix.tenants.commands import KeyCommand
from mirix.tenants.keys import DEFAULT_OVERLAP, MAX_OVERLAP_HOURS, rotate_api_key

DEFAULT_HOURS = DEFAULT_OVERLAP // timedelta(hours=1)


class Command(KeyCommand):
    """Print the new key alone, so that a script can take it; the old one keeps working for a while."""

    help = "Make a key in another's stead and print it; both work until the overlap ends."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization, the key and the overlap."""
        super().add_arguments(parser)
        parser.add_argument(
            "--overlap-hours",
            type=whole(low=0, high=MAX_OVERLAP_HOURS),
            default=DEFAULT_HOURS,
            metavar="N",
            help=f"how long the old key still works, 0 to {MAX_OVERLAP_HOURS} (default: {DEFAULT_HOURS})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rotate; what becomes of the old key is said on standard error."""
        old = self.key(options)
        try:
            row, key = rotate_api_key(
                api_key=old, overlap=timedelta(hours=options["overlap_hours"]), actor=Actor.operator()
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        old.refresh_from_db()
        assert old.expires_at
        until = timezone.localtime(old.expires_at)
        self.stderr.write(
            f"{old.prefix}… works until {until:%Y-%m-%d %H:%M %Z}"
            if old.is_usable
            else f"{old.prefix}… does not work any more"
        )
        self.answer(
            {
                "key": key,
                "id": row.id,
                "prefix": row.prefix,
                "permission": row.permission,
                "client_id": row.client_id,
                "organization_id": row.organization_id,
                "expires_at": row.expires_at,
                "replaces": old.id,
                "old_works_until": old.expires_at,
            },
            key,
        )
