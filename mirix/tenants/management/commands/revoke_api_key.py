"""Revoke an API key."""

from __future__ import annotations

from typing import Any

from mirix.tenants.audit import Actor
from mirix.tenants.commands import KeyCommand
from mirix.tenants.keys import revoke_api_key


class Command(KeyCommand):
    """Revoke a key, named by its id or its visible prefix."""

    help = "Revoke an API key of an organization at once."

    def handle(self, *args: Any, **options: Any) -> None:
        """Revoke and report."""
        row = revoke_api_key(api_key=self.key(options), actor=Actor.operator())
        self.answer(
            {"id": row.id, "prefix": row.prefix, "revoked_at": row.revoked_at},
            f"Revoked {row.prefix}… ({row.id}).",
        )
