"""Reads of the tenants app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from mirix.tenants.keys import hash_key
from mirix.tenants.models import (
    INHERITED,
    ApiKey,
    Client,
    EndUser,
    Membership,
    Organization,
    OrganizationSettings,
)
from mirix.tenants.owners import Owner
from mirix.tenants.principal import DECIDES, DECIDING_ROLES, Principal
from mirix.tenants.scope import WHO_CALLS
from mirix.text import clean_text

LAST_USED_STEP = timedelta(minutes=1)


def find_organization(*, name: str) -> Organization | None:
    """Return the organization of that id or name."""
    every = Organization.objects.for_organizations(None)
    return every.filter(pk=name).first() or every.filter(name=name.strip()).first()


def find_owner(*, principal: Principal, user_id: str | None) -> Owner | None:
    """Return the owner that a request names: its `user_id`, else the client's default end user.

    None when this organization knows no such end user; whether another one does is not visible. Raises
    `ValidationError` as `Principal.named_user` does.
    """
    return find_owner_of(organization=principal.organization, user_id=principal.named_user(user_id))


def find_owner_of(*, organization: Organization, user_id: str) -> Owner | None:
    """Return the owner of that `user_id` in an organization, if there is one."""
    end_user = EndUser.objects.for_organization(organization).filter(user_id=clean_text(user_id)).first()
    return Owner(organization=organization, end_user=end_user) if end_user else None


def settings_of(*, organization: Organization) -> OrganizationSettings:
    """Return the organization's own choices; an unsaved empty row when it made none."""
    chosen = OrganizationSettings.objects.for_organization(organization).first()
    return chosen or OrganizationSettings(organization=organization)


@dataclass(frozen=True, kw_only=True)
class Effective:
    """The settings that hold for an organization: its own choice, else the installation's.

    Days: 0 stands for ever. Tokens a day: 0 stands for no limit.
    """

    review_policy: str
    min_supporting_sessions: int
    four_eyes: bool
    deciding_role: str
    conversation_retention_days: int
    undistilled_retention_days: int
    raw_retention_days: int
    search_log_retention_days: int
    daily_token_budget: int
    redact_on_intake: bool


def effective(organization: Organization) -> Effective:
    """Return the settings that hold for an organization; one query."""
    chosen = settings_of(organization=organization)
    return Effective(**{name: _resolved(name, getattr(chosen, name)) for name in INHERITED})


def of_installation() -> Effective:
    """Return what holds for an organization that chose nothing."""
    return Effective(**{name: _resolved(name, None) for name in INHERITED})


def _resolved(name: str, chosen: Any) -> Any:
    return getattr(settings, f"MIRIX_{name.upper()}") if chosen in (None, "") else chosen


def deciding_roles(*, organization: Organization) -> frozenset[str]:
    """Return the roles whose members decide in an organization; superusers do everywhere."""
    return DECIDES[effective(organization).deciding_role]


def deciding_in(roles: Mapping[str, str]) -> list[str]:
    """Return in which organizations somebody decides who has these roles, by organization; one query."""
    ids = [pk for pk, role in roles.items() if role in DECIDING_ROLES]
    chosen = OrganizationSettings.objects.for_organizations(ids).values_list("pk", "deciding_role")
    by_organization = dict(chosen) if ids else {}
    return sorted(
        pk for pk in ids if roles[pk] in DECIDES[_resolved("deciding_role", by_organization.get(pk))]
    )


def may_review(*, user: User, organization: Organization) -> bool:
    """Return whether a Django user may decide about the organization's proposals and skills."""
    return user.is_active and (
        user.is_superuser
        or Membership.objects.for_organization(organization)
        .filter(user=user, role__in=deciding_roles(organization=organization))
        .exists()
    )


def find_trusted_client(*, client_id: str) -> Principal | None:
    """Return the client of that id as caller, taken at its word."""
    clients = Client.objects.unscoped(WHO_CALLS).select_related("organization")
    client = clients.filter(pk=clean_text(client_id)).first()
    return Principal.of_client(client) if client else None


def find_principal(*, key: str) -> Principal | None:
    """Return whom an API key speaks for; None when it is unknown, revoked or expired.

    Notes the time of use, at most once a minute, so that reads stay reads.
    """
    keys = ApiKey.objects.unscoped(WHO_CALLS).select_related("client", "organization")
    row = keys.filter(secret_hash=hash_key(key)).first()
    if row is None or not row.is_usable:
        return None
    now = timezone.now()
    if row.last_used_at is None or now - row.last_used_at > LAST_USED_STEP:
        keys.filter(pk=row.pk).update(last_used_at=now)
    return Principal.of_key(row)
