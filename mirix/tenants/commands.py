"""What commands that work on an owner share: the options that name it, and how they resolve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction
from django.db.models import Q

from mirix.commands import DataCommand
from mirix.tenants.audit import Actor
from mirix.tenants.models import ApiKey, Client, Organization
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_organization, find_owner_of
from mirix.tenants.services import (
    get_or_create_client,
    get_or_create_end_user,
    get_or_create_organization,
)


class OrganizationCommand(DataCommand):
    """A command that works inside one organization, named by `--organization`."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--organization`."""
        parser.add_argument("--organization", required=True, metavar="NAME", help="name or id")

    def organization(self, options: dict[str, Any]) -> Organization:
        """Return the organization; an unknown one is an operator's error."""
        organization = find_organization(name=options["organization"])
        if organization is None:
            raise CommandError(
                f"unknown organization {options['organization']!r}; "
                "create it with: ./run create_organization NAME"
            )
        return organization


class KeyCommand(OrganizationCommand):
    """A command that works on one API key of an organization, named by its id or its visible prefix."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the key."""
        super().add_arguments(parser)
        parser.add_argument("key", help="the key's id, or the prefix that the admin shows")

    def key(self, options: dict[str, Any]) -> ApiKey:
        """Return the key; an unknown one and a prefix that fits several are an operator's error."""
        organization, name = self.organization(options), options["key"]
        found = ApiKey.objects.for_organization(organization)
        keys = list(found.filter(Q(pk=name) | Q(prefix=name)))
        if not keys:
            raise CommandError(f"no key {name!r} in organization {organization.name!r}")
        if len(keys) > 1:
            raise CommandError(f"several keys begin with {name!r}; name one by its id")
        return keys[0]


class OwnerCommand(OrganizationCommand):
    """A command that works on one owner, named by `--organization` and `--user`."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--user`."""
        super().add_arguments(parser)
        parser.add_argument("--user", required=True, metavar="USER_ID", help="the end user's own id")

    def owner(self, options: dict[str, Any]) -> Owner:
        """Return the owner; an unknown one is an operator's error."""
        organization = self.organization(options)
        owner = find_owner_of(organization=organization, user_id=options["user"])
        if owner is None:
            raise CommandError(f"unknown user {options['user']!r} in organization {organization.name!r}")
        return owner


def create_missing(
    command: DataCommand, *, organization: str, client: str, user_id: str
) -> tuple[Client, Owner]:
    """Return client and owner by name for commands that load data; make what is missing and say so.

    Where one of the names is refused, nothing is made.
    """
    with _all_or_nothing(command) as made:
        organization_row = _organization(made, organization)
        client_row, is_new = get_or_create_client(
            organization=organization_row, name=client, actor=Actor.operator()
        )
        if is_new:
            made.append(f"client {client_row.name!r}")
        return client_row, _owner(made, organization_row, user_id)


def create_missing_owner(command: DataCommand, *, organization: str, user_id: str) -> Owner:
    """Return the owner by name; make the organization or the end user when missing, and say so.

    Where one of the names is refused, nothing is made.
    """
    with _all_or_nothing(command) as made:
        return _owner(made, _organization(made, organization), user_id)


def _organization(made: list[str], name: str) -> Organization:
    organization, is_new = get_or_create_organization(name=name, actor=Actor.operator())
    if is_new:
        made.append(f"organization {organization.name!r}")
    return organization


def _owner(made: list[str], organization: Organization, user_id: str) -> Owner:
    if known := find_owner_of(organization=organization, user_id=user_id):
        return known
    end_user = get_or_create_end_user(organization=organization, user_id=user_id)
    made.append(f"end user {end_user.user_id!r}")
    return Owner(organization=organization, end_user=end_user)


@contextmanager
def _all_or_nothing(command: DataCommand) -> Iterator[list[str]]:
    """Say what was made; what a service refuses is said as a command does, in one line, and nothing kept."""
    made: list[str] = []
    try:
        with transaction.atomic():
            yield made
    except ValidationError as error:
        raise CommandError("; ".join(error.messages)) from error
    for what in made:
        command.say(f"created {what}")
