"""List organizations, or one of them with what belongs to it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from mirix.commands import DataCommand
from mirix.tenants.models import ApiKey, Client, Membership, Organization
from mirix.tenants.selectors import find_organization
from mirix.text import visible_line


class Command(DataCommand):
    """Without a name all organizations; with one its clients, their keys and its members."""

    help = "List organizations; with a NAME its clients, API keys and members."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take a name or id, or none."""
        parser.add_argument("name", nargs="?", help="name or id of one")

    def handle(self, *args: Any, **options: Any) -> None:
        """List."""
        name = options["name"]
        if name is None:
            rows = list(Organization.objects.order_by("name").values("id", "name", "created_at"))
            self.answer(rows, _table([[row["name"], row["id"]] for row in rows]) or "No organization yet.")
            return
        organization = find_organization(name=name)
        if organization is None:
            raise CommandError(f"unknown organization {name!r}")
        self._show(organization)

    def _show(self, organization: Organization) -> None:
        clients = Client.objects.for_organization(organization).order_by("name")
        keys = (
            ApiKey.objects.for_organization(organization)
            .select_related("client")
            .order_by("created_at", "pk")
        )
        members = Membership.objects.for_organization(organization).select_related("user")
        members = members.order_by("user__username")
        sections = {
            f"{visible_line(organization.name)} ({organization.pk})": [],
            "Clients": [[client.name, client.pk] for client in clients],
            "API keys": [
                [f"{key.prefix}…", key.pk, key.client.name, key.permission, state_of(key), key.name]
                for key in keys
            ],
            "Members": [[member.user.get_username(), member.role] for member in members],
        }
        self.answer(
            {
                "id": organization.pk,
                "name": organization.name,
                "clients": [{"id": client.pk, "name": client.name} for client in clients],
                "api_keys": [
                    {
                        "id": key.pk,
                        "prefix": key.prefix,
                        "name": key.name,
                        "client": key.client.name,
                        "permission": key.permission,
                        "state": state_of(key),
                        "expires_at": key.expires_at,
                        "last_used_at": key.last_used_at,
                    }
                    for key in keys
                ],
                "members": [
                    {"username": member.user.get_username(), "role": member.role} for member in members
                ],
            },
            "\n".join(f"{title}\n{_table(rows, indent='  ')}".rstrip() for title, rows in sections.items()),
        )


def state_of(key: ApiKey) -> str:
    """Return `usable`, `replaced` while a rotated key still works, `expired` or `revoked`."""
    if key.revoked_at is not None:
        return "revoked"
    if not key.is_usable:
        return "expired"
    return "replaced" if key.replaced_by_id else "usable"


def _table(rows: list[list[str]], indent: str = "") -> str:
    """Return rows in columns as wide as their widest cell."""
    rows = [[visible_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        (indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    )
