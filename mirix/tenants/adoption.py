"""Organizations, clients and end users that come from elsewhere with an id and a past.

Each is known again by its id, so that whoever brings them may do it twice. A name that people could not use
here, or that is taken, gives way to one near it: what comes from elsewhere is never put together with what
only shares its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from mirix.ids import is_id
from mirix.moments import set_moments
from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import AuditEvent, Client, EndUser, Organization
from mirix.tenants.services import MAX_NAME
from mirix.text import HIDDEN, clean_text, shorten

USABLE_ID = re.compile(r"[!-~]{1,128}")
MAX_NUMBER_CHARS = 8


@dataclass(frozen=True, kw_only=True)
class Newcomer:
    """An organization or a client as it was elsewhere."""

    ids: Sequence[str]
    """Ids that it may get here; the first that is free or its own counts."""
    name: str
    created_at: datetime | None


@transaction.atomic
def adopt_organization(
    *, newcomer: Newcomer, actor: Actor, details: Mapping[str, Any] | None = None
) -> tuple[Organization, bool]:
    """Return the organization and whether it was made now. The last of its ids is known to be its own.

    `details` are recorded with its adoption, for `adopted_organizations`.
    """
    every = Organization.objects.for_organizations(None)
    if known := every.filter(pk__in=newcomer.ids).first():
        return known, False
    names = every.filter(name__startswith=_stem(newcomer)).values_list("name", flat=True)
    organization = Organization(pk=newcomer.ids[-1], name=_free_name(newcomer, set(names)))
    organization.save(force_insert=True)
    set_moments(Organization, ["created_at"], [(organization.pk, newcomer.created_at)])
    record(
        organization=organization,
        actor=actor,
        action=Act.ORGANIZATION_CREATED,
        target=organization,
        details={"name": organization.name, **(details or {})},
    )
    return organization, True


def adopted_organizations(*, whole_id: str, id_prefix: str) -> list[tuple[Organization, dict[str, Any]]]:
    """Return the organization of this id and those whose ids begin so, each with what was recorded then."""
    every = Organization.objects.for_organizations(None)
    found = every.filter(Q(pk=whole_id) | Q(pk__startswith=id_prefix)).order_by("pk").in_bulk()
    made = AuditEvent.objects.for_organizations(found).filter(action=Act.ORGANIZATION_CREATED)
    details = dict(made.values_list("organization", "details"))
    return [(organization, details.get(pk, {})) for pk, organization in found.items()]


@transaction.atomic
def adopt_client(*, organization: Organization, newcomer: Newcomer, actor: Actor) -> tuple[Client, bool]:
    """Return the client, which has no keys, and whether it was made now."""
    ids = [pk for pk in newcomer.ids if USABLE_ID.fullmatch(pk)]
    holders = Client.objects.for_organizations(None).in_bulk(ids)
    for known in holders.values():
        if known.organization_id == organization.pk:
            return known, False
    names = Client.objects.for_organization(organization).values_list("name", flat=True)
    client = Client(
        pk=next(pk for pk in ids if pk not in holders),
        organization=organization,
        name=_free_name(newcomer, set(names)),
    )
    client.save(force_insert=True)
    set_moments(Client, ["created_at"], [(client.pk, newcomer.created_at)])
    record(
        organization=organization,
        actor=actor,
        action=Act.CLIENT_CREATED,
        target=client,
        details={"name": client.name},
    )
    return client, True


@transaction.atomic
def adopt_end_users(
    *, organization: Organization, people: Mapping[str, tuple[str, datetime | None]]
) -> tuple[dict[str, EndUser], set[str]]:
    """Return end users by `user_id`, and the ids of those made now; `people` are names and times by id."""
    every = EndUser.objects.for_organization(organization)
    known = set(every.filter(user_id__in=people).values_list("user_id", flat=True))
    new = [
        EndUser(organization=organization, user_id=user_id, name=shorten(clean_text(name), 256))
        for user_id, (name, _) in people.items()
        if user_id not in known
    ]
    EndUser.objects.bulk_create(new, ignore_conflicts=True)
    found = {row.user_id: row for row in every.filter(user_id__in=people)}
    made = [row for row in new if found[row.user_id].pk == row.pk]
    set_moments(EndUser, ["created_at"], [(row.pk, people[row.user_id][1]) for row in made])
    return found, {row.user_id for row in made}


def _stem(newcomer: Newcomer) -> str:
    """Return a name that people can use, in one line without hidden characters."""
    name = shorten(HIDDEN.sub("", clean_text(newcomer.name)), MAX_NAME - MAX_NUMBER_CHARS)
    if not name or is_id(name):
        name = f"imported {name or shorten(newcomer.ids[0], MAX_NAME // 2)}"
    return name


def _free_name(newcomer: Newcomer, taken: Collection[str]) -> str:
    name = stem = _stem(newcomer)
    number = 2
    while name in taken:
        name = f"{stem} ({number})"
        number += 1
    return name
