"""Who is who: organizations, clients, keys, end users, members; what they chose, and who changed it."""

from __future__ import annotations

from mirix.tenants.admin import keys, organizations, people, trail

__all__ = ["keys", "organizations", "people", "trail"]
