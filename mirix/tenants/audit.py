"""The audit trail: who did what to an organization, its clients, keys, people and settings.

Services write here, in the transaction of the act itself, so that no act is without its event and no event
without its act. Details are for people to read and hold no secret.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from django.db import models

from mirix.tenants.models import ActorKind, AuditEvent, Organization
from mirix.text import clean_json, clean_text

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from mirix.tenants.principal import Principal


class Act(models.TextChoices):
    """What can be done; the value is what is stored."""

    ORGANIZATION_CREATED = "organization.created", "Organization created"
    ORGANIZATION_RENAMED = "organization.renamed", "Organization renamed"
    SETTINGS_CHANGED = "settings.changed", "Settings changed"
    WEBHOOK_SECRET_MADE = "settings.webhook_secret", "Webhook secret made"
    CLIENT_CREATED = "client.created", "Client created"
    CLIENT_RENAMED = "client.renamed", "Client renamed"
    KEY_CREATED = "api_key.created", "API key created"
    KEY_ROTATED = "api_key.rotated", "API key rotated"
    KEY_REVOKED = "api_key.revoked", "API key revoked"
    END_USER_CREATED = "end_user.created", "End user created"
    END_USER_RENAMED = "end_user.renamed", "End user renamed"
    MEMBER_ADDED = "member.added", "Member added"
    ROLE_CHANGED = "member.role_changed", "Role changed"
    MEMBER_REMOVED = "member.removed", "Member removed"
    LOGIN_CREATED = "login.created", "Login made"
    LOGIN_RENAMED = "login.renamed", "Login renamed"
    LOGIN_SWITCHED_OFF = "login.switched_off", "Login switched off"
    LOGIN_SWITCHED_ON = "login.switched_on", "Login switched on"
    LOGIN_DELETED = "login.deleted", "Login deleted"
    EMAIL_CHANGED = "login.email_changed", "E-mail address changed"
    PASSWORD_SET = "login.password_set", "Password set"
    STAFF_GRANTED = "login.staff_granted", "Admin opened to a login"
    STAFF_REVOKED = "login.staff_revoked", "Admin closed to a login"
    SUPERUSER_GRANTED = "login.superuser_granted", "Made a superuser"
    SUPERUSER_REVOKED = "login.superuser_revoked", "No superuser any more"
    INTAKE_REPLAYED = "intake.replayed", "Request replayed"
    INTAKE_GIVEN_UP = "intake.given_up", "Request given up"
    SESSION_CLOSED = "session.closed", "Session closed"
    EXPERIENCE_RELEASED = "experience.released", "Experience released"
    SESSION_RETRIED = "session.retried", "Session to be read again"
    RUN_STARTED = "run.started", "Run started"
    ERASED = "erasure.done", "Erased"


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who acts, by value."""

    kind: str
    id: str = ""
    name: str = ""

    @classmethod
    def of_user(cls, user: User) -> Self:
        """Return a person who is logged in."""
        return cls(kind=ActorKind.USER, id=str(user.pk), name=user.get_username())

    @classmethod
    def of_principal(cls, principal: Principal) -> Self:
        """Return the caller of an API request: a person, or a client by its key."""
        if principal.user is not None:
            return cls.of_user(principal.user)
        name = principal.client.name if principal.client else ""
        return cls(kind=ActorKind.KEY, id=principal.identity, name=name)

    @classmethod
    def operator(cls) -> Self:
        """Return who runs a command: the account of the operating system."""
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # containers run as numbers without a name
            name = f"uid {os.getuid()}"
        return cls(kind=ActorKind.COMMAND, name=name)


SYSTEM = Actor(kind=ActorKind.SYSTEM, name="mirix")


def record(
    *,
    organization: Organization | None,
    actor: Actor,
    action: Act,
    target: models.Model,
    details: Mapping[str, Any] | None = None,
) -> AuditEvent:
    """Write one event, in the caller's transaction; `details` are plain JSON values without a secret.

    An act on a login that is a member of no organization belongs to none.
    """
    return AuditEvent.objects.create(
        organization=organization,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=clean_text(actor.name)[:150],
        action=action,
        target_type=str(target._meta.model_name),
        target_id=str(target.pk),
        details=clean_json(dict(details or {})),
    )
