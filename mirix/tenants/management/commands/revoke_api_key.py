"""Revoke an API key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import ApiKey
from mirix.tenants.services import revoke_api_key


class Command(OrganizationCommand):
    """Revoke a key, named by its id or its visible prefix."""

    help = "Revoke an API key of an organization at once."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization and the key."""
        super().add_arguments(parser)
        parser.add_argument("key", help="the key's id, or the prefix that the admin shows")

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke and report; a prefix that fits several keys is refused."""
        organization = self.organization(options)
        keys = list(
            ApiKey.objects.filter(Q(pk=options["key"]) | Q(prefix=options["key"]), organization=organization)
        )
        if not keys:
            raise CommandError(f"no key {options['key']!r} in organization {organization.name!r}")
        if len(keys) > 1:
            raise CommandError(f"several keys begin with {options['key']!r}; name one by its id")
        row = revoke_api_key(api_key=keys[0])
        self.answer(
            {"id": row.id, "prefix": row.prefix, "revoked_at": row.revoked_at},
            f"Revoked {row.prefix}… ({row.id}).",
        )
