"""Tokens of people: a short-lived one to call with, and one to renew it, which serves once.

Both name the person and one organization, and nothing else is believed of them: role, activity and password
are looked up each time, so that whatever changes counts at once. The id of a token is `<family>-<unique>`, a
family being one login, which lasts as long as one of its refresh tokens waits to be used. Of these the ids
alone are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.token_blacklist.models import BlacklistedToken, OutstandingToken
from rest_framework_simplejwt.tokens import Token
from rest_framework_simplejwt.utils import datetime_from_epoch

from mirix.tenants.models import Membership, Organization
from mirix.tenants.principal import Principal
from mirix.tenants.querysets import TenantQuerySet
from mirix.tenants.scope import WHO_CALLS

USER = api_settings.USER_ID_CLAIM
ID = api_settings.JTI_CLAIM
ORGANIZATION = "organization"
LOGIN = "login"
"""The claim that ties a token to the password which it was got with."""
MAX_CHARS = 4096


class Access(Token):
    """What a person calls with."""

    token_type = "access"  # noqa: S105 (a kind, not a secret)
    lifetime = api_settings.ACCESS_TOKEN_LIFETIME


class Refresh(Token):
    """What a person gets the next pair with."""

    token_type = "refresh"  # noqa: S105
    lifetime = api_settings.REFRESH_TOKEN_LIFETIME


Kind = TypeVar("Kind", bound=Token)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two fresh tokens, and whom they speak for."""

    access: str
    refresh: str
    principal: Principal
    expires_in: int
    """Seconds that the access token lives."""


def find_member(*, user: User, organization: str) -> Principal | None:
    """Return a person as caller in the organization of that id or name.

    None where the person does not belong to it; superusers belong to each. Without a name (`""`) it is the
    one organization that the person is a member of, if it is the only one.
    """
    memberships = _memberships().filter(user=user)
    if not organization:
        found = list(memberships[:2])
        member = found[0] if len(found) == 1 else None
    else:
        member = (
            memberships.filter(organization=organization).first()
            or memberships.filter(organization__name=organization).first()
        )
    if not user.is_superuser:
        return Principal.of_member(member) if member else None
    if member:
        return Principal.of_superuser(user, member.organization)
    every = Organization.objects.unscoped(WHO_CALLS)
    row = every.filter(pk=organization).first() or every.filter(name=organization).first()
    return Principal.of_superuser(user, row) if row else None


@transaction.atomic
def issue(*, principal: Principal) -> Pair:
    """Return tokens for a person whose password was checked."""
    return _issue(principal, family=uuid4().hex)


@transaction.atomic
def renew(*, refresh: str) -> Pair | None:
    """Return the next pair of tokens for a refresh token, which is spent by that.

    None when it is not one of ours, expired, or speaks for nobody any more. One that was spent before was
    copied: then every token that came of the same login is spent as well, and its holders log in again.
    """
    token = _read(Refresh, refresh)
    if token is None:
        return None
    # One renewal of a person at a time: none may slip through while a family is revoked.
    User.objects.select_for_update(no_key=True).filter(pk=token[USER]).first()
    row = OutstandingToken.objects.filter(jti=token[ID]).first()
    if row is None:
        return None
    family = _family(token)
    _, is_first = BlacklistedToken.objects.get_or_create(token=row)
    if not is_first:
        _revoke(family)
        return None
    principal = _principal(token)
    return _issue(principal, family=family) if principal else None


def find_person(*, access: str) -> Principal | None:
    """Return whom an access token speaks for; None when it is not ours, expired, or speaks for nobody."""
    token = _read(Access, access)
    return _principal(token, Exists(_living(_family(token)))) if token else None


def forget_expired() -> int:
    """Delete what is stored of tokens that have expired; return how many rows went."""
    deleted, _ = OutstandingToken.objects.filter(expires_at__lt=timezone.now()).delete()
    return deleted


def _issue(principal: Principal, family: str) -> Pair:
    user = principal.user
    assert user is not None
    access, refresh = Access(), Refresh()
    for token in (access, refresh):
        token[ID] = f"{family}-{uuid4().hex}"
        token[USER] = str(user.pk)
        token[ORGANIZATION] = principal.organization.pk
        token[LOGIN] = user.get_session_auth_hash()
    OutstandingToken.objects.create(
        user=user,
        jti=refresh[ID],
        token="",  # the id is enough; the token itself would be a secret at rest
        created_at=refresh.current_time,
        expires_at=datetime_from_epoch(max(refresh["exp"], access["exp"])),  # the login lasts as long
    )
    return Pair(
        access=str(access),
        refresh=str(refresh),
        principal=principal,
        expires_in=int(access["exp"] - access["iat"]),
    )


def _family(token: Token) -> str:
    return str(token[ID]).partition("-")[0]


def _living(family: str) -> QuerySet[OutstandingToken]:
    """Return the refresh tokens of a login that were not spent; there is none once it has ended."""
    return OutstandingToken.objects.filter(jti__startswith=f"{family}-", blacklistedtoken=None)


def _revoke(family: str) -> None:
    BlacklistedToken.objects.bulk_create([BlacklistedToken(token=row) for row in _living(family)])


def _read(kind: type[Kind], text: str) -> Kind | None:
    if not text.isascii() or len(text) > MAX_CHARS:
        return None
    try:
        return kind(text)  # type: ignore[arg-type]
    except (TokenError, RecursionError):  # the header of a token is JSON from anybody
        return None


def _principal(token: Token, *conditions: Exists) -> Principal | None:
    user_id, organization_id = token[USER], token[ORGANIZATION]
    member = _memberships().filter(*conditions, user=user_id, organization=organization_id).first()
    user = member.user if member else User.objects.filter(*conditions, pk=user_id, is_superuser=True).first()
    if user is None or not user.is_active:
        return None
    if not constant_time_compare(token[LOGIN], user.get_session_auth_hash()):
        return None
    if member and not user.is_superuser:
        return Principal.of_member(member)
    every = Organization.objects.unscoped(WHO_CALLS)
    organization = member.organization if member else every.filter(pk=organization_id).first()
    return Principal.of_superuser(user, organization) if organization else None


def _memberships() -> TenantQuerySet:
    return Membership.objects.unscoped(WHO_CALLS).select_related("organization", "user")
