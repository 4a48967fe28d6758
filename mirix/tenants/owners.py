"""The owner: the pair (organization, end user) that sessions, experiences and skills belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirix.tenants.models import EndUser, Organization


@dataclass(frozen=True, kw_only=True)
class Owner:
    """One end user of one organization."""

    organization: Organization
    end_user: EndUser

    def __str__(self) -> str:
        return f"{self.organization.name}/{self.end_user.user_id}"
