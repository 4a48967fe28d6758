"""Take a person's role in an organization away."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.tenants.audit import Actor
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.members import remove_member
from mirix.tenants.models import Membership


class Command(OrganizationCommand):
    """Remove a member; the login stays."""

    help = "Take a person's role in an organization away; the last administrator stays."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization and the user name."""
        super().add_arguments(parser)
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove and report."""
        organization, username = self.organization(options), options["username"]
        members = Membership.objects.for_organization(organization).select_related("user")
        membership = members.filter(user__username=username).first()
        if membership is None:
            raise CommandError(f"{username!r} is no member of {organization.name!r}")
        try:
            remove_member(membership=membership, actor=Actor.operator())
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.answer(
            {"username": username, "organization": organization.name, "role": membership.role},
            f"{username} is no member of {organization.name} any more.",
        )
