"""Make an API key; the only time it is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from mirix.commands import DataCommand, whole
from mirix.tenants.audit import Actor
from mirix.tenants.keys import MAX_LIFE_DAYS, create_api_key
from mirix.tenants.models import Permission
from mirix.tenants.services import get_or_create_client, get_or_create_organization


class Command(DataCommand):
    """Print the new key alone, so that a script can take it: `KEY=$(./run create_api_key …)`."""

    help = "Make an API key and print it; it is stored as a hash and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take organization, client, permission and life time."""
        parser.add_argument(
            "--organization", required=True, metavar="NAME", help="name or id; made if missing"
        )
        parser.add_argument("--client", default="default", metavar="NAME", help="name or id; made if missing")
        parser.add_argument("--permission", choices=Permission.values, default=Permission.WRITE)
        parser.add_argument("--name", default="", help="a word to recognize the key by")
        parser.add_argument(
            "--days",
            type=whole(low=1, high=MAX_LIFE_DAYS),
            metavar="N",
            help="expire after N days (default: never)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the key; what was made beside it is said on standard error."""
        days = options["days"]
        actor = Actor.operator()
        try:
            organization, made_organization = get_or_create_organization(
                name=options["organization"], actor=actor
            )
            client, made_client = get_or_create_client(
                organization=organization, name=options["client"], actor=actor
            )
            row, key = create_api_key(
                client=client,
                actor=actor,
                name=options["name"],
                permission=options["permission"],
                expires_at=timezone.now() + timedelta(days=days) if days else None,
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        if made_organization:
            self.stderr.write(f"created organization {organization.name!r}")
        if made_client:
            self.stderr.write(f"created client {client.name!r}")
        self.answer(
            {
                "key": key,
                "id": row.id,
                "prefix": row.prefix,
                "permission": row.permission,
                "client_id": client.id,
                "organization_id": organization.id,
                "expires_at": row.expires_at,
            },
            key,
        )
