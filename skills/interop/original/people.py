"""Whose a row of the original is: its organization, end user and client there, and what they are here.

A row's own organization decides, not its user's. Who was erased there is not brought back, and nobody's rows
stay where they are. Organizations are told apart by id and the moment they were made, since two databases
share fixed ids; everything else by its id within its organization.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from mirix.tenants.adoption import (
    Newcomer,
    adopt_client,
    adopt_end_users,
    adopt_organization,
    adopted_organizations,
)
from mirix.tenants.audit import Actor
from mirix.tenants.models import Client, EndUser, Organization
from mirix.tenants.owners import Owner
from skills.interop.original.report import Moved, TableReport
from skills.interop.original.scopes import Past, Scoped, Scopes
from skills.interop.original.source import Source, batched
from skills.interop.original.values import HASH_DIGITS, Row, digest, flag, moment, reference, text

DEFAULT_USER = "user-00000000-0000-4000-8000-000000000000"
DEFAULT_CLIENT = "client-00000000-0000-4000-8000-000000000000"
TEMPLATE_USER = "user-default-"
FALLBACK_CLIENT = "import_mirix"
"""The client of turns and experiences whose own nobody knows."""
MAX_USER_ID = 256
PART_DIGITS = HASH_DIGITS // 2


TWICE = "another row has its id"


class Skip(Exception):
    """A row that is left behind, and why."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """An organization, user or client as its row has it."""

    id: str
    organization_id: str
    name: str
    created_at: str
    is_erased: bool

    @property
    def moment(self) -> datetime | None:
        """When it was made."""
        return moment(self.created_at)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Whose a row is, of people of the original that were found, and where it goes by its scope."""

    organization: Known
    user_id: str
    client: Known | None
    scope: str | None

    @property
    def key(self) -> tuple[str, str | None, str]:
        """What is the same for all rows of one owner."""
        return self.organization.id, self.scope, self.user_id


@dataclass(kw_only=True)
class People:
    """Organizations, users and clients of the original; makes those of ours as they are asked for."""

    source: Source
    actor: Actor
    scopes: Scopes
    organizations: dict[str, Known] = field(default_factory=dict)
    users: dict[str, Known] = field(default_factory=dict)
    clients: dict[str, Known] = field(default_factory=dict)
    agents: dict[str, str | None] = field(default_factory=dict)
    """Which client made an agent."""
    moved: dict[tuple[str, str | None], Moved] = field(default_factory=dict)
    _organizations: dict[tuple[str, str | None], Organization] = field(default_factory=dict)
    _owners: dict[tuple[str, str | None, str], Owner] = field(default_factory=dict)
    _clients: dict[tuple[str, str | None, str], Client] = field(default_factory=dict)

    def read(self) -> None:
        """Read who is who; they are few beside what they own."""
        self.organizations = self._known("organizations")
        self.users = self._known("users")
        if self.source.has("clients", "id"):
            self.clients = self._known("clients")
        if self.source.has("agents", "id", "_created_by_id"):
            rows = self.source.rows("agents", ["id", "_created_by_id"])
            self.agents = {row["id"] or "": row["_created_by_id"] for row in rows}

    def read_scopes(self) -> list[Scoped]:
        """Return the scopes of the clients that come over, for `Scopes.decide`."""
        columns = ("id", "scope", "write_scope", "read_scopes")
        return [
            Scoped.of(row, organization_id=self.clients[client_id].organization_id)
            for row in (self.source.rows("clients", columns) if self.clients else ())
            if (client_id := row["id"] or "") in self.clients and self.reason_against(client_id) is None
        ]

    def read_past(self) -> Past:
        """Return what earlier imports made of the organizations."""
        past = Past()
        for known in self.organizations.values():
            whole = organization_id(known, None)
            for found, details in adopted_organizations(whole_id=whole, id_prefix=_part_prefix(known)):
                if found.pk == whole:
                    past.whole[known.id] = found.name
                    continue
                past.split[known.id] = found.name
                ids = {pk: client.id for client in self.clients.values() for pk in _client_ids(found, client)}
                for pk in (
                    Client.objects.for_organization(found).filter(pk__in=ids).values_list("pk", flat=True)
                ):
                    past.homes[known.id, ids[pk]] = details.get("scope")
        return past

    def reason_against(self, client_id: str) -> str | None:
        """Return why a client does not come over; None if it does."""
        client = self.clients[client_id]
        if client.is_erased:
            return "erased"
        if client_id == DEFAULT_CLIENT and not self._default_client_is_used():
            return "the default client, which nothing refers to"
        return self._against_organization(client.organization_id)

    def place(self, row: Row, *, client_id: str | None, is_without_user: bool = False) -> Place:
        """Return whose a row is. Raises `Skip` where it is nobody's any more."""
        if flag(row.get("is_deleted")):
            raise Skip("erased")
        organization_id = reference(row.get("organization_id"))
        if reason := self._against_organization(organization_id):
            raise Skip(reason)
        user_id = DEFAULT_USER if is_without_user else row.get("user_id")
        user = self.users.get(reference(user_id))
        if user is None and not is_without_user:
            raise Skip("its user is missing")
        if user is not None and user.is_erased:
            raise Skip("its user was erased")
        client = self.clients.get(reference(client_id))
        if client is not None and client.is_erased:
            raise Skip("its client was erased")
        scope = self.scopes.of_row(row, organization_id, client.id if client else None)
        return Place(
            organization=self.organizations[organization_id],
            user_id=user_id or "",
            client=client,
            scope=scope,
        )

    def owner(self, place: Place) -> Owner:
        """Return the owner here, made on first use."""
        if place.key not in self._owners:
            self.meet([place])
        return self._owners[place.key]

    def meet(self, places: Iterable[Place]) -> None:
        """Make the owners of many places at once, for `owner`."""
        wanted: dict[tuple[str, str | None], dict[str, Known | None]] = {}
        for place in places:
            if place.key not in self._owners:
                users = wanted.setdefault((place.organization.id, place.scope), {})
                users[place.user_id] = self.users.get(place.user_id)
        for (organization_id, scope), users in wanted.items():
            self._meet(self.organizations[organization_id], scope, users)

    def client(self, place: Place) -> Client:
        """Return the client of a turn or an experience here: its own, or one that stands for the unknown."""
        known = place.client
        if known is None or known.organization_id != place.organization.id:
            return self._unknown_client(place.organization, place.scope)
        if self.scopes.of_client(known.organization_id, known.id) != place.scope:
            return self._unknown_client(place.organization, place.scope)
        return self.client_of(known)[0]

    def client_of(self, known: Known) -> tuple[Client, bool]:
        """Return a client here and whether it was made now; of several scopes, in that which it writes to."""
        scope = self.scopes.of_client(known.organization_id, known.id)
        key = (known.organization_id, scope, known.id)
        if key in self._clients:
            return self._clients[key], False
        organization = self.organization(self.organizations[known.organization_id], scope)
        newcomer = Newcomer(
            ids=_client_ids(organization, known),
            name=known.name or known.id,
            created_at=known.moment,
        )
        client, is_new = adopt_client(organization=organization, newcomer=newcomer, actor=self.actor)
        self._clients[key] = client
        return client, is_new

    def organization(self, known: Known, scope: str | None) -> Organization:
        """Return an organization here, or that of one scope of it; made on first use."""
        key = (known.id, scope)
        if key not in self._organizations:
            newcomer = Newcomer(
                ids=[organization_id(known, self.scopes.label(known.id, scope))],
                name=self.scopes.named(known.name or known.id, known.id, scope),
                created_at=known.moment,
            )
            details = {"scope": scope} if self.scopes.is_split(known.id) else {}
            found, is_new = adopt_organization(newcomer=newcomer, actor=self.actor, details=details)
            self._organizations[key] = found
            self.moved[key] = Moved(
                original_id=known.id,
                original_name=known.name,
                scope=scope,
                id=found.pk,
                name=found.name,
                is_new=is_new,
            )
        return self._organizations[key]

    def bring_users(self, report: TableReport, advance: Callable[[int], None]) -> Iterator[None]:
        """Make the end users of the table of users, in their own organizations; yields between batches."""
        one_id = Counter(
            (user.organization_id, fitting_user_id(user.id))
            for user in self.users.values()
            if not user.is_erased
        )
        report.notes["put together: ids that differ only in how letters are composed"] += sum(
            count for count in one_id.values() if count > 1
        )
        for batch in batched(self.users.values()):
            wanted: dict[str, dict[str, Known | None]] = {}
            for user in batch:
                report.rows += 1
                if reason := self._against_user(user):
                    report.skipped[reason] += 1
                else:
                    wanted.setdefault(user.organization_id, {})[user.id] = user
            for organization_id, users in wanted.items():
                made = self._meet(self.organizations[organization_id], None, users)
                report.imported += made
                report.unchanged += len(users) - made
            advance(len(batch))
            yield

    def _against_user(self, user: Known) -> str | None:
        if user.is_erased:
            return "erased"
        if user.id.startswith(TEMPLATE_USER):
            return "a template for new users"
        if self.scopes.is_split(user.organization_id):
            return "made in the organization of each scope that it has rows in"
        return self._against_organization(user.organization_id)

    def _against_organization(self, organization_id: str) -> str | None:
        organization = self.organizations.get(organization_id)
        if organization is None:
            return "its organization is missing"
        return "its organization was erased" if organization.is_erased else None

    def _meet(self, organization: Known, scope: str | None, users: dict[str, Known | None]) -> int:
        """Make end users where they are missing, and return how many were."""
        here = self.organization(organization, scope)
        names = {fitting_user_id(user_id): (user_id, user) for user_id, user in users.items()}
        found, made = adopt_end_users(
            organization=here,
            people={
                fitting: (user.name if user and user.name != user_id else "", user.moment if user else None)
                for fitting, (user_id, user) in names.items()
            },
        )
        for user_id in users:
            end_user: EndUser = found[fitting_user_id(user_id)]
            self._owners[organization.id, scope, user_id] = Owner(organization=here, end_user=end_user)
        return len(made)

    def _unknown_client(self, organization: Known, scope: str | None) -> Client:
        key = (organization.id, scope, "")
        if key not in self._clients:
            here = self.organization(organization, scope)
            newcomer = Newcomer(
                ids=[f"client-{digest(here.pk, 'unknown')}"], name=FALLBACK_CLIENT, created_at=None
            )
            self._clients[key], _ = adopt_client(organization=here, newcomer=newcomer, actor=self.actor)
        return self._clients[key]

    def _default_client_is_used(self) -> bool:
        return any(
            self.source.holds(table, column, DEFAULT_CLIENT)
            for table, column in (
                ("procedural_memory", "client_id"),
                ("conversation_message", "_created_by_id"),
                ("skill_experience", "_created_by_id"),
            )
        )

    def _known(self, table: str) -> dict[str, Known]:
        columns = ("id", "organization_id", "name", "created_at", "is_deleted")
        return {
            row["id"] or "": Known(
                id=row["id"] or "",
                organization_id=reference(row.get("organization_id")),
                name=text(row.get("name")),
                created_at=row.get("created_at") or "",
                is_erased=flag(row.get("is_deleted")),
            )
            for row in self.source.rows(table, columns)
        }


def organization_id(known: Known, label: str | None) -> str:
    """Return the id that an organization, or one scope of it, gets here: the same each time that it comes."""
    if label is None:
        return f"org-{digest('organizations', known.id, known.created_at)}"
    return _part_prefix(known) + digest("organizations", known.id, known.created_at, label)[:PART_DIGITS]


def _part_prefix(known: Known) -> str:
    """Return how the ids of an organization's parts begin, by which they are found whatever their scopes."""
    return organization_id(known, None)[:-PART_DIGITS]


def _client_ids(organization: Organization, known: Known) -> list[str]:
    """Return the ids that a client may have here: its own, or one for where somebody else has that."""
    return [known.id, f"client-{digest(organization.pk, known.id)}"]


def fitting_user_id(user_id: str) -> str:
    """Return the id of a user as it can be stored; one that cannot gives way to one made from it."""
    fitting = text(user_id)
    if fitting.strip() and len(fitting) <= MAX_USER_ID:
        return fitting
    return f"user-{digest('users', user_id)}"
