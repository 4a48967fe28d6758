"""Who is calling: what authentication found out, and all that permissions and services need of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirix.tenants.models import Permission

if TYPE_CHECKING:
    from mirix.tenants.models import Client, Organization

RANK: dict[str, int] = {Permission.READ: 0, Permission.WRITE: 1, Permission.ADMIN: 2}


@dataclass(frozen=True, kw_only=True)
class Principal:
    """The caller of an API request; `request.auth` and `request.user` hold it."""

    organization: Organization
    client: Client
    permission: str
    key_id: str

    is_authenticated = True

    def may(self, permission: str) -> bool:
        """Return whether the caller has `permission` or more."""
        return RANK[self.permission] >= RANK[permission]
