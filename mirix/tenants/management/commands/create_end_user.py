"""Create an end user."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from mirix.tenants.selectors import find_owner_of
from mirix.tenants.services import create_end_user, get_or_create_organization
from mirix.text import visible_line


class Command(DataCommand):
    """Print the id of the organization's end user of that user id; make what is missing."""

    help = "Create an end user, or show the one that exists; a client's first session makes one too."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization, the user id and a name."""
        parser.add_argument(
            "--organization", required=True, metavar="NAME", help="name or id; made if missing"
        )
        parser.add_argument("--name", default="", help="for people to read")
        parser.add_argument("user_id")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and report."""
        actor, user_id = Actor.operator(), options["user_id"]
        try:
            organization, made = get_or_create_organization(name=options["organization"], actor=actor)
            known = find_owner_of(organization=organization, user_id=user_id)
            end_user = (
                known.end_user
                if known
                else create_end_user(
                    organization=organization, user_id=user_id, name=options["name"], actor=actor
                )
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        if made:
            self.say(f"created organization {organization.name!r}")
        verb = "Exists already:" if known else "Created"
        self.answer(
            {
                "id": end_user.id,
                "user_id": end_user.user_id,
                "name": end_user.name,
                "organization_id": organization.id,
                "created": known is None,
            },
            visible_line(f"{verb} {end_user.user_id} ({end_user.id}) of {organization.name}"),
        )
