"""Read the audit trail of an organization."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from mirix.commands import MAX_LISTED, whole
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import AuditEvent
from mirix.text import visible_line


class Command(OrganizationCommand):
    """Print who did what, the newest first."""

    help = "Print the audit trail of an organization: who did what to it, its clients, keys and members."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the organization and how many events."""
        parser.add_argument(
            "--organization",
            metavar="NAME",
            help="name or id; omitted: what was done to logins that are members of none",
        )
        parser.add_argument(
            "--limit", type=whole(low=1, high=MAX_LISTED), default=50, metavar="N", help="default: 50"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """List the events."""
        events = (
            AuditEvent.objects.for_organization(self.organization(options))
            if options["organization"] is not None
            else AuditEvent.objects.filter(organization=None)
        )
        fields = ("created_at", "action", "actor_kind", "actor_id", "actor_name", "target_id", "details")
        rows = list(events.order_by("-created_at", "-pk").values("id", *fields)[: options["limit"]])
        self.answer(rows, "\n".join(map(_line, rows)) or "Nothing was done yet.")


def _line(event: dict[str, Any]) -> str:
    details = visible_line(", ".join(f"{name}={value}" for name, value in event["details"].items()))
    who = visible_line(event["actor_name"] or event["actor_id"])
    moment = event["created_at"].strftime("%Y-%m-%d %H:%M:%S")
    line = f"{moment}  {event['action']}  {event['target_id']}  by {who} ({event['actor_kind']})"
    return f"{line}  {details}" if details else line
