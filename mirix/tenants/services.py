"""Writes of the tenants app: organizations, clients, keys, end users, members.

Every `get_or_create_…` rests on a unique constraint, so that two callers at once end with one row.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from mirix.tenants.models import ApiKey, Client, EndUser, Membership, Organization, Permission, Role
from mirix.tenants.principal import Principal
from mirix.text import clean_text

SECRET_BYTES = 32
PREFIX_CHARS = 11
MEMBERS_CLIENT = "members"
"""The client that stands for people: what they add by hand belongs to it."""


def hash_key(key: str) -> str:
    """Return what is stored of a key: its SHA-256 in hex. The secret has 256 random bits; no salt needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@transaction.atomic
def get_or_create_organization(*, name: str) -> tuple[Organization, bool]:
    """Return the organization of that name or id and whether it was made now.

    Raises `ValidationError` for a blank or over-long name.
    """
    name = clean_text(name).strip()
    known = Organization.objects.filter(pk=name).first()
    if known:
        return known, False
    _check_length("name", name, 128)
    return Organization.objects.get_or_create(name=name)


@transaction.atomic
def get_or_create_client(*, organization: Organization, name: str) -> tuple[Client, bool]:
    """Return the organization's client of that name or id and whether it was made now."""
    name = clean_text(name).strip()
    known = Client.objects.filter(organization=organization, pk=name).first()
    if known:
        return known, False
    _check_length("name", name, 128)
    return Client.objects.get_or_create(organization=organization, name=name)


def client_of(*, principal: Principal) -> Client:
    """Return the client that a caller's writes belong to; for people, one of their own, made on first use."""
    if principal.client is not None:
        return principal.client
    client, _ = get_or_create_client(organization=principal.organization, name=MEMBERS_CLIENT)
    return client


@transaction.atomic
def get_or_create_end_user(*, organization: Organization, user_id: str, name: str = "") -> EndUser:
    """Return the end user whose own id is `user_id`; made on first use.

    Raises `ValidationError` with the field's name for a blank or over-long id.
    """
    user_id = clean_text(user_id)
    _check_length("user_id", user_id, 256)
    end_user, _ = EndUser.objects.get_or_create(
        organization=organization, user_id=user_id, defaults={"name": clean_text(name)[:256]}
    )
    return end_user


@transaction.atomic
def create_api_key(
    *,
    client: Client,
    name: str = "",
    permission: str = Permission.WRITE,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Make a key for a client; return its row and the key itself, which is shown once and never stored."""
    key = f"mx_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = ApiKey(
        organization=client.organization,
        client=client,
        name=clean_text(name),
        prefix=key[:PREFIX_CHARS],
        secret_hash=hash_key(key),
        permission=permission,
        expires_at=expires_at,
    )
    row.full_clean()
    row.save()
    return row, key


@transaction.atomic
def revoke_api_key(*, api_key: ApiKey) -> ApiKey:
    """Revoke a key from now on; revoking it again keeps the first time."""
    ApiKey.objects.filter(pk=api_key.pk, revoked_at=None).update(revoked_at=timezone.now())
    api_key.refresh_from_db()
    return api_key


@transaction.atomic
def set_membership(*, organization: Organization, user: User, role: str) -> tuple[Membership, bool]:
    """Give a Django user a role in an organization; return the membership and whether it is new.

    The user becomes staff, since the admin is where members work.
    """
    if role not in Role.values:
        raise ValidationError({"role": [f"Must be one of {', '.join(Role.values)}."]})
    membership, created = Membership.objects.update_or_create(
        organization=organization, user=user, defaults={"role": role}
    )
    if not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
    return membership, created


def _check_length(field: str, value: str, limit: int) -> None:
    if not value.strip():
        raise ValidationError({field: ["May not be blank."]})
    if len(value) > limit:
        raise ValidationError({field: [f"May have at most {limit} characters; this has {len(value)}."]})
