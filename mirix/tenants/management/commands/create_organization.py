"""Create an organization."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from mirix.tenants.services import get_or_create_organization
from mirix.text import visible_line


class Command(DataCommand):
    """Print the id of the organization of that name; make it when there is none."""

    help = "Create an organization, or show the one that exists."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name."""
        parser.add_argument("name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and report."""
        try:
            organization, created = get_or_create_organization(name=options["name"], actor=Actor.operator())
        except ValidationError as error:
            raise CommandError(f"name: {'; '.join(error.messages)}") from error
        verb = "Created" if created else "Exists already:"
        self.answer(
            {"id": organization.id, "name": organization.name, "created": created},
            visible_line(f"{verb} {organization.name} ({organization.id})"),
        )
