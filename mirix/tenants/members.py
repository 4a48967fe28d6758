"""Who may log in to an organization, and as what.

An organization that has an administrator keeps one: the last can neither be removed nor given another role,
nor the login be switched off (`logins`), by nobody, so that nobody locks an organization by mistake. Add
another administrator first.
"""

from __future__ import annotations

import secrets

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.views.decorators.debug import sensitive_variables

from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import Membership, Organization, Role
from mirix.text import clean_text

LAST_ADMINISTRATOR = "This is the organization's last administrator; make somebody else one first."


@transaction.atomic
def set_membership(
    *, organization: Organization, user: User, role: str, actor: Actor
) -> tuple[Membership, bool]:
    """Give a Django user a role in an organization; return the membership and whether it is new.

    The user becomes staff, since the admin is where members work. Raises `ValidationError` for a role that is
    none, and where the organization would lose its last administrator.
    """
    if role not in Role.values:
        raise ValidationError({"role": [f"Must be one of {', '.join(Role.values)}."]})
    lock(organization)
    membership = Membership.objects.for_organization(organization).filter(user=user).first()
    is_new = membership is None
    if membership is None:
        membership = Membership.objects.create(organization=organization, user=user, role=role)
        _record(membership, actor, Act.MEMBER_ADDED)
    elif membership.role != role:
        keep_an_administrator(membership, error_field="role")
        before, membership.role = membership.role, role
        membership.save(update_fields=["role"])
        _record(membership, actor, Act.ROLE_CHANGED, before=before)
    if not user.is_staff:
        user.is_staff = True
        user.save(update_fields=["is_staff"])
    return membership, is_new


@transaction.atomic
def add_existing_member(*, organization: Organization, name: str, role: str, actor: Actor) -> Membership:
    """Give a role to somebody who logs in here already: `name` is their user name, or their e-mail address.

    For whoever runs the installation: an administrator of one organization would learn who belongs to others,
    and change what these people meet when they log in. Raises `ValidationError`, naming the field, where
    nobody or more than one fits, and for somebody who is a member already.
    """
    user = _find_login(clean_text(name).strip())
    lock(organization)
    if Membership.objects.for_organization(organization).filter(user=user).exists():
        raise ValidationError({"username": ["They are a member already; change their role instead."]})
    membership, _ = set_membership(organization=organization, user=user, role=role, actor=actor)
    return membership


def _find_login(name: str) -> User:
    active = User.objects.filter(is_active=True)
    if exact := active.filter(username=name).first():
        return exact
    found = list(active.filter(email__iexact=name)[:2]) if name else []
    if len(found) > 1:
        raise ValidationError({"username": ["Several logins have this address; give the user name."]})
    if not found:
        raise ValidationError({"username": ["There is no login of exactly this name."]})
    return found[0]


@sensitive_variables("password")
@transaction.atomic
def add_new_member(
    *, organization: Organization, username: str, email: str, role: str, actor: Actor
) -> tuple[Membership, str]:
    """Make a login with a random password and give it a role; return both, the password to be shown once.

    Raises `ValidationError`, naming the field, for a user name or an address that Django refuses, and for a
    name that is taken, of which it tells no more.
    """
    password = secrets.token_urlsafe(12)
    user = User(username=clean_text(username).strip(), email=clean_text(email).strip())
    user.set_password(password)
    user.full_clean(validate_unique=False)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise ValidationError({"username": ["This user name is taken."]}) from error
    details = {"username": user.get_username()}
    record(organization=organization, actor=actor, action=Act.LOGIN_CREATED, target=user, details=details)
    membership, _ = set_membership(organization=organization, user=user, role=role, actor=actor)
    return membership, password


@transaction.atomic
def remove_member(*, membership: Membership, actor: Actor) -> None:
    """Take a person's role in an organization away; the login stays, for other organizations may need it.

    Raises `ValidationError` for the last administrator. Whoever was removed already stays so.
    """
    lock(membership.organization)
    members = Membership.objects.with_organization_of(membership).select_related("user", "organization")
    current = members.filter(pk=membership.pk).first()
    if current is None:
        return
    keep_an_administrator(current)
    _record(current, actor, Act.MEMBER_REMOVED)
    current.delete()


def lock(organization: Organization) -> None:
    """Let one at a time change who is in an organization: two administrators might remove each other."""
    Organization.objects.for_organization(organization).select_for_update(no_key=True).get()


def keep_an_administrator(membership: Membership, error_field: str = "") -> None:
    """Raise `ValidationError` where the organization has no other administrator than this one."""
    if membership.role != Role.ADMINISTRATOR:
        return
    administrators = Membership.objects.with_organization_of(membership).filter(
        role=Role.ADMINISTRATOR, user__is_active=True, user__is_staff=True
    )
    if not administrators.exclude(pk=membership.pk).exists():
        raise ValidationError({error_field: [LAST_ADMINISTRATOR]} if error_field else LAST_ADMINISTRATOR)


def _record(membership: Membership, actor: Actor, action: Act, **details: str) -> None:
    record(
        organization=membership.organization,
        actor=actor,
        action=action,
        target=membership,
        details={"username": membership.user.get_username(), "role": membership.role} | details,
    )
