"""Who is who: organizations, their clients and keys, the end users they serve, the people who review."""

from mirix.tenants.models.base import TenantModel
from mirix.tenants.models.callers import ApiKey, Client, EndUser, Owned, Permission
from mirix.tenants.models.members import Membership, Role
from mirix.tenants.models.notifications import Channel, Notification, NotificationState
from mirix.tenants.models.organizations import (
    INHERITED,
    MAX_DAYS,
    MAX_SUPPORTING_SESSIONS,
    DecidingRole,
    Organization,
    OrganizationSettings,
    ReviewPolicy,
)
from mirix.tenants.models.records import ActorKind, AuditEvent, ErasedKind, ErasureReceipt
from mirix.tenants.models.usage import TokenUsage

__all__ = [
    "INHERITED",
    "MAX_DAYS",
    "MAX_SUPPORTING_SESSIONS",
    "ActorKind",
    "ApiKey",
    "AuditEvent",
    "Channel",
    "Client",
    "DecidingRole",
    "EndUser",
    "ErasedKind",
    "ErasureReceipt",
    "Membership",
    "Notification",
    "NotificationState",
    "Organization",
    "OrganizationSettings",
    "Owned",
    "Permission",
    "ReviewPolicy",
    "Role",
    "TenantModel",
    "TokenUsage",
]
