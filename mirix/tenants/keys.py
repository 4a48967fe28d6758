"""Keys of clients: made, rotated, revoked. The key itself is returned once, to be shown, and never stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import ApiKey, Client, Permission
from mirix.text import clean_text, visible_line

SECRET_BYTES = 32
PREFIX_CHARS = 11
DEFAULT_OVERLAP = timedelta(hours=24)
MAX_OVERLAP_HOURS = 24 * 30
MAX_LIFE_DAYS = 36_500


def hash_key(key: str) -> str:
    """Return what is stored of a key: its SHA-256 in hex. The secret has 256 random bits; no salt needed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


@sensitive_variables("key")
@transaction.atomic
def create_api_key(
    *,
    client: Client,
    actor: Actor,
    name: str = "",
    permission: str = Permission.WRITE,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Make a key for a client; return its row and the key itself, which is shown once and never stored.

    Raises `ValidationError`, naming the field, for a permission that is none or an over-long name.
    """
    row, key = _make(client=client, name=name, permission=permission, expires_at=expires_at)
    record(
        organization=row.organization,
        actor=actor,
        action=Act.KEY_CREATED,
        target=row,
        details=_details(row) | {"expires_at": expires_at.isoformat() if expires_at else None},
    )
    return row, key


@sensitive_variables("key")
@transaction.atomic
def rotate_api_key(
    *, api_key: ApiKey, actor: Actor, overlap: timedelta = DEFAULT_OVERLAP
) -> tuple[ApiKey, str]:
    """Make a key in another's stead; both work while the overlap lasts, then only the new one.

    The new key may do the same, and lives as long from now as the old one was to live from its making.
    Returns its row and the key itself. Raises `ValidationError` for a key that does not work any more or was
    rotated already, and for an overlap that is negative or longer than `MAX_OVERLAP_HOURS`.
    """
    if not timedelta(0) <= overlap <= timedelta(hours=MAX_OVERLAP_HOURS):
        raise ValidationError({"overlap_hours": [f"Must be between 0 and {MAX_OVERLAP_HOURS}."]})
    keys = ApiKey.objects.with_organization_of(api_key)
    old = keys.select_for_update(of=("self",), no_key=True).get(pk=api_key.pk)
    now = timezone.now()
    if not old.is_usable:
        raise ValidationError("This key does not work any more; make a new one instead.")
    if old.replaced_by_id is not None:
        raise ValidationError("This key was rotated already; rotate the one that replaces it.")
    life = old.expires_at - old.created_at if old.expires_at else None
    new, key = _make(
        client=old.client, name=old.name, permission=old.permission, expires_at=now + life if life else None
    )
    old.replaced_by = new
    old.expires_at = min(now + overlap, old.expires_at or now + overlap)
    old.save(update_fields=["replaced_by", "expires_at"])
    record(
        organization=old.organization,
        actor=actor,
        action=Act.KEY_ROTATED,
        target=old,
        details=_details(old)
        | {"replaced_by": new.pk, "new_prefix": new.prefix, "works_until": old.expires_at.isoformat()},
    )
    return new, key


@transaction.atomic
def revoke_api_key(*, api_key: ApiKey, actor: Actor) -> ApiKey:
    """Revoke a key from now on; revoking it again keeps the first time."""
    keys = ApiKey.objects.with_organization_of(api_key)
    revoked = keys.filter(pk=api_key.pk, revoked_at=None).update(revoked_at=timezone.now())
    api_key.refresh_from_db()
    if revoked:
        record(
            organization=api_key.organization,
            actor=actor,
            action=Act.KEY_REVOKED,
            target=api_key,
            details=_details(api_key),
        )
    return api_key


@sensitive_variables("key")
def _make(*, client: Client, name: str, permission: str, expires_at: datetime | None) -> tuple[ApiKey, str]:
    key = f"mx_{secrets.token_urlsafe(SECRET_BYTES)}"
    row = ApiKey(
        organization=client.organization,
        client=client,
        name=clean_text(name).strip(),
        prefix=key[:PREFIX_CHARS],
        secret_hash=hash_key(key),
        permission=permission,
        expires_at=expires_at,
    )
    require_visible(row.name)
    row.full_clean()
    row.save()
    return row, key


def require_visible(name: str) -> None:
    """Raise `ValidationError` for a name that is not one line of characters that are seen as they are."""
    if visible_line(name) != name:
        raise ValidationError({"name": ["May hold no line ends and nothing that cannot be seen."]})


def _details(row: ApiKey) -> dict[str, str]:
    """Return what the trail says of a key: what the admin shows of it, never the key."""
    return {"prefix": row.prefix, "client": row.client.name, "permission": row.permission}
