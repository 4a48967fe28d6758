"""Create a client of an organization."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from mirix.tenants.services import get_or_create_client, get_or_create_organization
from mirix.text import visible_line


class Command(DataCommand):
    """Print the id of the organization's client of that name; make what is missing."""

    help = "Create a client of an organization, or show the one that exists."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization and the name."""
        parser.add_argument(
            "--organization", required=True, metavar="NAME", help="name or id; made if missing"
        )
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and report."""
        actor = Actor.operator()
        try:
            organization, made = get_or_create_organization(name=options["organization"], actor=actor)
            client, created = get_or_create_client(
                organization=organization, name=options["name"], actor=actor
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        if made:
            self.say(f"created organization {organization.name!r}")
        verb = "Created" if created else "Exists already:"
        self.answer(
            {
                "id": client.id,
                "name": client.name,
                "organization": organization.name,
                "organization_id": organization.id,
                "created": created,
            },
            visible_line(f"{verb} {client.name} ({client.id}) of {organization.name}"),
        )
