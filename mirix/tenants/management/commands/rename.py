"""Give an organization, a client or an end user another name."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from mirix.tenants.audit import Actor
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Client, Organization
from mirix.tenants.selectors import find_owner_of
from mirix.tenants.services import rename_client, rename_end_user, rename_organization


class Command(OrganizationCommand):
    """`rename --organization NAME [--client NAME | --user USER_ID] NEW_NAME`."""

    help = "Give an organization another name, or one of its clients or end users."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to rename, and the name."""
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--client", metavar="NAME", help="name or id of the client to rename")
        what.add_argument("--user", metavar="USER_ID", help="the end user to rename; the id stays")
        parser.add_argument("name", metavar="NEW_NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rename and report."""
        organization, name, actor = self.organization(options), options["name"], Actor.operator()
        try:
            if options["client"] is not None:
                client = self._client(organization, options["client"])
                row_id = rename_client(client=client, name=name, actor=actor).pk
            elif options["user"] is not None:
                owner = find_owner_of(organization=organization, user_id=options["user"])
                if owner is None:
                    raise CommandError(
                        f"unknown user {options['user']!r} in organization {organization.name!r}"
                    )
                row_id = rename_end_user(end_user=owner.end_user, name=name, actor=actor).pk
            else:
                row_id = rename_organization(organization=organization, name=name, actor=actor).pk
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.answer({"id": row_id, "name": name.strip()}, f"{row_id} is called {name.strip()} now.")

    @staticmethod
    def _client(organization: Organization, name: str) -> Client:
        clients = Client.objects.for_organization(organization)
        client = clients.filter(Q(pk=name) | Q(name=name)).first()
        if client is None:
            raise CommandError(f"unknown client {name!r} in organization {organization.name!r}")
        return client
