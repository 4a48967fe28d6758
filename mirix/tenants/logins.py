"""Logins: what is done to them is in the trail of each organization that they are members of.

A login belongs to the installation, and one of no organization leaves its events there, for superusers. The
last login that administers an organization can neither be switched off nor deleted, by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.members import keep_an_administrator, lock
from mirix.tenants.models import Membership, Organization, Role
from mirix.tenants.querysets import TenantQuerySet

BELONGS = "a login belongs to the installation, and its acts to all of its organizations"
TEXTS = {"email": Act.EMAIL_CHANGED, "password": Act.PASSWORD_SET}
SWITCHES = {
    "is_active": (Act.LOGIN_SWITCHED_OFF, Act.LOGIN_SWITCHED_ON),
    "is_staff": (Act.STAFF_REVOKED, Act.STAFF_GRANTED),
    "is_superuser": (Act.SUPERUSER_REVOKED, Act.SUPERUSER_GRANTED),
}
"""Acts by field: what it is to turn it off, and on."""


@transaction.atomic
def save_login(*, user: User, actor: Actor) -> User:
    """Store a login that is new or was changed.

    Raises `ValidationError` where an organization would lose its last administrator.
    """
    before = User.objects.filter(pk=user.pk).first()
    if before is not None and not (user.is_active and user.is_staff):
        require_other_administrators(user=before)
    user.save()
    if before is None:
        record_new_login(user=user, actor=actor)
    else:
        record_changes(before=before, actor=actor)
    return user


@transaction.atomic
def delete_login(*, user: User, actor: Actor) -> None:
    """Delete a login and its memberships.

    Raises `ValidationError` where an organization would lose its last administrator.
    """
    require_other_administrators(user=user)
    for organization in _organizations_of(user):
        _record(organization, user, actor, Act.LOGIN_DELETED)
    user.delete()


def require_other_administrators(*, user: User) -> None:
    """Raise `ValidationError` where an organization has no administrator but this one.

    Holds these organizations until the caller's transaction ends: two might be switched off at once.
    """
    administered = _memberships_of(user).filter(role=Role.ADMINISTRATOR)
    for membership in administered.order_by("organization"):
        lock(membership.organization)
    for membership in administered.filter(user__is_active=True, user__is_staff=True):
        keep_an_administrator(membership)


def record_new_login(*, user: User, actor: Actor) -> None:
    """Note that a login was made, in the caller's transaction."""
    for organization in _organizations_of(user):
        _record(organization, user, actor, Act.LOGIN_CREATED)
        if user.is_superuser:
            _record(organization, user, actor, Act.SUPERUSER_GRANTED)


def record_changes(*, before: User, actor: Actor) -> None:
    """Note what has become of a login that was as `before`, in the caller's transaction."""
    after = User.objects.get(pk=before.pk)
    for organization in _organizations_of(after):
        for act, details in _acts(before, after):
            _record(organization, after, actor, act, **details)


def _acts(before: User, after: User) -> Iterator[tuple[Act, dict[str, Any]]]:
    """Return what was done; addresses and passwords are none of the trail's business."""
    changed = {
        name for name in ("username", *TEXTS, *SWITCHES) if getattr(before, name) != getattr(after, name)
    }
    if "username" in changed:
        yield Act.LOGIN_RENAMED, {"before": before.get_username()}
    yield from ((act, {}) for name, act in TEXTS.items() if name in changed)
    yield from ((acts[getattr(after, name)], {}) for name, acts in SWITCHES.items() if name in changed)


def _memberships_of(user: User) -> TenantQuerySet:
    return Membership.objects.unscoped(BELONGS).filter(user=user).select_related("organization", "user")


def _organizations_of(user: User) -> list[Organization | None]:
    memberships = _memberships_of(user).order_by("organization")
    return [membership.organization for membership in memberships] or [None]


def _record(organization: Organization | None, user: User, actor: Actor, act: Act, **details: Any) -> None:
    record(
        organization=organization,
        actor=actor,
        action=act,
        target=user,
        details={"username": user.get_username()} | details,
    )
