"""Who is calling: what authentication found out, and all that permissions and services need of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from django.core.exceptions import ValidationError

from mirix.tenants.models import DecidingRole, Permission, Role

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from mirix.tenants.models import ApiKey, Client, Membership, Organization

RANK: dict[str, int] = {Permission.READ: 0, Permission.WRITE: 1, Permission.ADMIN: 2}
PERMISSION_OF_ROLE: dict[str, Permission] = {
    Role.REVIEWER: Permission.READ,
    Role.OPERATOR: Permission.WRITE,
    Role.ADMINISTRATOR: Permission.ADMIN,
}
DECIDING_ROLES = frozenset({Role.REVIEWER.value, Role.ADMINISTRATOR.value})
DECIDES: dict[str, frozenset[str]] = {
    DecidingRole.REVIEWER: DECIDING_ROLES,
    DecidingRole.ADMINISTRATOR: frozenset({Role.ADMINISTRATOR.value}),
}
"""Who decides, by what the organization chose."""
OPERATING_ROLES = frozenset({Role.OPERATOR.value, Role.ADMINISTRATOR.value})
RELEASE_QUARANTINED = "release_quarantined"
ROLES_WITH: dict[str, frozenset[str]] = {RELEASE_QUARANTINED: DECIDING_ROLES}
"""Who has a permission that goes beyond reading, writing and administering."""
NO_DEFAULT_USER = "This field is required: a member has no default end user."


@dataclass(frozen=True, kw_only=True)
class Principal:
    """The caller of an API request, a client or a person; `request.auth` and `request.user` hold it.

    A client calls with a key (`key_id`), or by its id alone where that is trusted. A person (`user`) calls
    with a token: as a member of the organization, or as a superuser, who may be without a membership.
    """

    organization: Organization
    permission: str
    client: Client | None = None
    key_id: str = ""
    user: User | None = None
    member: Membership | None = None
    role: str = ""
    """Of a person; empty for clients, who never decide."""

    is_authenticated = True

    @classmethod
    def of_key(cls, key: ApiKey) -> Self:
        """Return the caller behind a client's key."""
        return cls(organization=key.organization, client=key.client, permission=key.permission, key_id=key.pk)

    @classmethod
    def of_client(cls, client: Client) -> Self:
        """Return the caller who is taken for a client without a key: it reads and writes."""
        return cls(organization=client.organization, client=client, permission=Permission.WRITE)

    @classmethod
    def of_member(cls, member: Membership) -> Self:
        """Return the person behind a membership."""
        return cls(
            organization=member.organization,
            permission=PERMISSION_OF_ROLE[member.role],
            user=member.user,
            member=member,
            role=member.role,
        )

    @classmethod
    def of_superuser(cls, user: User, organization: Organization) -> Self:
        """Return a superuser in an organization: an administrator of each."""
        return cls(organization=organization, permission=Permission.ADMIN, user=user, role=Role.ADMINISTRATOR)

    @property
    def identity(self) -> str:
        """Return who calls in one word, never a secret: `key:…`, `client:…` or `user:…`."""
        if self.user is not None:
            return f"user:{self.user.pk}"
        if self.key_id:
            return f"key:{self.key_id}"
        assert self.client is not None
        return f"client:{self.client.pk}"

    def may(self, permission: str) -> bool:
        """Return whether the caller has `permission` or more."""
        return RANK[self.permission] >= RANK[permission]

    @property
    def may_release(self) -> bool:
        """True for people who may let evolution use an experience that was quarantined."""
        return self.role in ROLES_WITH[RELEASE_QUARANTINED]

    @property
    def may_operate(self) -> bool:
        """True for people who may run, replay and import."""
        return self.role in OPERATING_ROLES

    @property
    def may_administer(self) -> bool:
        """True for people who may do everything in the organization."""
        return self.role == Role.ADMINISTRATOR

    def named_user(self, user_id: str | None) -> str:
        """Return the `user_id` that a request is about: the one it names, else the client's default.

        Raises `ValidationError`, naming the field, where there is no default: people call for themselves.
        """
        if user_id:
            return user_id
        if self.client is None:
            raise ValidationError({"user_id": [NO_DEFAULT_USER]})
        return self.client.default_user_id
