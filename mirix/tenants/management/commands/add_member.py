"""Give a person a role in an organization."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from mirix.tenants.members import add_new_member, set_membership
from mirix.tenants.models import Role
from mirix.tenants.services import get_or_create_organization


class Command(DataCommand):
    """Add a member; a user who does not exist yet is made with a password that is printed once."""

    help = "Give a Django user a role in an organization; make the user when there is none."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take organization, user name and role."""
        parser.add_argument(
            "--organization", required=True, metavar="NAME", help="name or id; made if missing"
        )
        parser.add_argument("--role", choices=Role.values, default=Role.REVIEWER)
        parser.add_argument("--email", default="")
        parser.add_argument("username")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Add and report."""
        username, role, actor = options["username"], options["role"], Actor.operator()
        password = ""
        try:
            organization, made = get_or_create_organization(name=options["organization"], actor=actor)
            user = User.objects.filter(username=username).first()
            if user is None:
                membership, password = add_new_member(
                    organization=organization,
                    username=username,
                    email=options["email"],
                    role=role,
                    actor=actor,
                )
            else:
                membership, _ = set_membership(organization=organization, user=user, role=role, actor=actor)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        if made:
            self.say(f"created organization {organization.name!r}")
        text = f"{username} is {membership.role} of {organization.name}."
        self.answer(
            {
                "username": username,
                "organization": organization.name,
                "role": membership.role,
                "password": password or None,
            },
            f"{text} Password, shown this once: {password}" if password else text,
        )
