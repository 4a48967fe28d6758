"""Writes of the tenants app: organizations, clients and end users.

Keys, members and settings have modules of their own (`keys`, `members`, `preferences`).

Every `get_or_create_…` rests on a unique constraint, so that two callers at once end with one row. Whoever
acts is named, and what they did is in the audit trail; end users that appear with their first session are
not an act of anybody.
"""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction

from mirix.ids import is_id
from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.keys import require_visible
from mirix.tenants.models import Client, EndUser, Organization
from mirix.tenants.principal import Principal
from mirix.text import clean_text, is_blank

MEMBERS_CLIENT = "members"
"""The client that stands for people: what they add by hand belongs to it."""
MAX_NAME = 128
MAX_USER_ID = 256


@transaction.atomic
def create_organization(*, name: str, actor: Actor) -> Organization:
    """Make an organization. Raises `ValidationError` for a name that is blank, too long or taken."""
    organization = Organization(name=_checked_name(name))
    _insert(organization, "name", "There is an organization of this name already.")
    record(
        organization=organization,
        actor=actor,
        action=Act.ORGANIZATION_CREATED,
        target=organization,
        details={"name": organization.name},
    )
    return organization


@transaction.atomic
def get_or_create_organization(*, name: str, actor: Actor) -> tuple[Organization, bool]:
    """Return the organization of that name or id and whether it was made now.

    Raises `ValidationError` for a blank or over-long name.
    """
    name = clean_text(name).strip()
    every = Organization.objects.for_organizations(None)
    known = every.filter(pk=name).first() or every.filter(name=name).first()
    if known:
        return known, False
    try:
        return create_organization(name=name, actor=actor), True
    except ValidationError:
        # Somebody may have been faster, else the name itself was refused.
        if known := every.filter(name=name).first():
            return known, False
        raise


@transaction.atomic
def rename_organization(*, organization: Organization, name: str, actor: Actor) -> Organization:
    """Give an organization another name. Raises `ValidationError` as `create_organization` does."""
    before = organization.name
    if not _rename(organization, name, "There is an organization of this name already."):
        return organization
    record(
        organization=organization,
        actor=actor,
        action=Act.ORGANIZATION_RENAMED,
        target=organization,
        details={"before": before, "name": organization.name},
    )
    return organization


@transaction.atomic
def create_client(*, organization: Organization, name: str, actor: Actor) -> Client:
    """Make a client. Raises `ValidationError` for a name that is blank, too long or taken there."""
    client = Client(organization=organization, name=_checked_name(name))
    _insert(client, "name", "There is a client of this name already.")
    record(
        organization=organization,
        actor=actor,
        action=Act.CLIENT_CREATED,
        target=client,
        details={"name": client.name},
    )
    return client


@transaction.atomic
def get_or_create_client(*, organization: Organization, name: str, actor: Actor) -> tuple[Client, bool]:
    """Return the organization's client of that name or id and whether it was made now."""
    name = clean_text(name).strip()
    clients = Client.objects.for_organization(organization)
    known = clients.filter(pk=name).first() or clients.filter(name=name).first()
    if known:
        return known, False
    try:
        return create_client(organization=organization, name=name, actor=actor), True
    except ValidationError:
        if known := clients.filter(name=name).first():
            return known, False
        raise


@transaction.atomic
def rename_client(*, client: Client, name: str, actor: Actor) -> Client:
    """Give a client another name. Raises `ValidationError` as `create_client` does."""
    before = client.name
    if not _rename(client, name, "There is a client of this name already."):
        return client
    record(
        organization=client.organization,
        actor=actor,
        action=Act.CLIENT_RENAMED,
        target=client,
        details={"before": before, "name": client.name},
    )
    return client


def client_of(*, principal: Principal) -> Client:
    """Return the client that a caller's writes belong to; for people, one of their own, made on first use."""
    if principal.client is not None:
        return principal.client
    client, _ = get_or_create_client(
        organization=principal.organization, name=MEMBERS_CLIENT, actor=Actor.of_principal(principal)
    )
    return client


@transaction.atomic
def get_or_create_end_user(
    *, organization: Organization, user_id: str, name: str = "", made_by: Client | None = None
) -> EndUser:
    """Return the end user whose own id is `user_id`; made on first use, `made_by` a client or somebody else.

    Raises `ValidationError` with the field's name for a blank or over-long id.
    """
    user_id = _checked("user_id", user_id, MAX_USER_ID)
    end_user, _ = EndUser.objects.for_organization(organization).get_or_create(
        organization=organization,
        user_id=user_id,
        defaults={"name": clean_text(name)[:256], "made_by": made_by},
    )
    return end_user


@transaction.atomic
def create_end_user(*, organization: Organization, user_id: str, name: str, actor: Actor) -> EndUser:
    """Make an end user by hand. Raises `ValidationError` for an id that is blank, too long or taken there."""
    end_user = EndUser(
        organization=organization,
        user_id=_checked("user_id", user_id, MAX_USER_ID),
        name=_checked_name(name, MAX_USER_ID, blank=True),
    )
    _insert(end_user, "user_id", "There is an end user of this id already.")
    # The caller's id and the name may be personal, and the event stays when the end user is erased.
    record(organization=organization, actor=actor, action=Act.END_USER_CREATED, target=end_user)
    return end_user


@transaction.atomic
def rename_end_user(*, end_user: EndUser, name: str, actor: Actor) -> EndUser:
    """Change the name that people read; the id is the caller's and stays."""
    name = _checked_name(name, MAX_USER_ID, blank=True)
    if name == end_user.name:
        return end_user
    end_user.name = name
    end_user.save(update_fields=["name"])
    record(organization=end_user.organization, actor=actor, action=Act.END_USER_RENAMED, target=end_user)
    return end_user


def _checked_name(name: str, limit: int = MAX_NAME, *, blank: bool = False) -> str:
    """Return a name as it is stored, or raise `ValidationError`.

    People and commands address rows by name or id, so no name looks like an id; and whoever reads a name
    sees the whole of it, in one line.
    """
    name = _checked("name", clean_text(name).strip(), limit, blank=blank)
    if is_id(name):
        raise ValidationError({"name": ["May not look like an id."]})
    require_visible(name)
    return name


def _checked(field: str, value: str, limit: int, *, blank: bool = False) -> str:
    """Return a text as it is stored, or raise `ValidationError` with the field's name."""
    value = clean_text(value)
    if not blank and is_blank(value):
        raise ValidationError({field: ["May not be blank."]})
    if len(value) > limit:
        raise ValidationError({field: [f"May have at most {limit} characters; this has {len(value)}."]})
    return value


def _insert(row: models.Model, field: str, taken: str) -> None:
    """Save a row whose only rule left is that `field` is unique; the database decides, also in a race."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise ValidationError({field: [taken]}) from error


def _rename(row: Organization | Client, name: str, taken: str) -> bool:
    """Give a row another name and return whether it is one; a refused row keeps its own."""
    before, row.name = row.name, _checked_name(name)
    if row.name == before:
        return False
    try:
        with transaction.atomic():
            row.save(update_fields=["name"])
    except IntegrityError as error:
        row.name = before
        raise ValidationError({"name": [taken]}) from error
    return True
