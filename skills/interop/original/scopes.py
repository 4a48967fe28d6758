"""Scopes of clients: labels that a client stamps on what it adds, and those that it may read. Pure.

They are not carried over: here the organization is the border. Where the clients of one organization have
different scopes, somebody has to say whether they share it from now on, or whether each scope becomes an
organization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from skills.interop.original.values import Row, numbered_value, text

Choice = Literal["merge", "split"]

MAX_NAMED = 5
UNLABELLED = "without a scope"


@dataclass(frozen=True, kw_only=True)
class Scoped:
    """The scopes of one client."""

    client_id: str
    organization_id: str
    home: str | None
    """The scope of what it adds; of one that only reads, the first that it reads."""
    labels: frozenset[str]
    """All that it adds to or reads."""

    @classmethod
    def of(cls, row: Row, *, organization_id: str) -> Self:
        """Return those of a row of `clients`, whatever its generation."""
        reads = numbered_value(row.get("read_scopes"))
        labels = [text(item) for item in reads if isinstance(item, str)] if isinstance(reads, list) else []
        for column in ("write_scope", "scope"):
            if (label := row.get(column)) is not None:
                labels.insert(0, text(label))
        return cls(
            client_id=row["id"] or "",
            organization_id=organization_id,
            home=labels[0] if labels else None,
            labels=frozenset(labels),
        )


class ScopesDiffer(Exception):
    """The clients of an organization have different scopes, and nobody said what is to become of them."""


class ChosenOtherwise(Exception):
    """An earlier import of this database did the other thing with scopes."""


@dataclass(kw_only=True)
class Past:
    """What earlier imports made of organizations, by their ids in the original; names are those here."""

    whole: dict[str, str] = field(default_factory=dict)
    split: dict[str, str] = field(default_factory=dict)
    """The name of one of the parts."""
    homes: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The scope whose part a client came to, by organization and client."""


@dataclass(kw_only=True)
class Scopes:
    """Where rows go by their scope: nowhere else, unless their organization is split."""

    choice: Choice | None
    kept_whole: set[str] = field(default_factory=set)
    """Organizations that would be split if they had not come whole before."""
    _home: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _split: set[str] = field(default_factory=set)

    def decide(self, clients: Iterable[Scoped], names: Mapping[str, str], past: Past) -> None:
        """Look which organizations are concerned; `names` are theirs. Raises `ScopesDiffer`.

        What came before stays as it came, whatever its scopes are by now: an organization whole or split,
        and a client in its part. Raises `ChosenOtherwise` where that is not what was chosen, if another
        choice is.
        """
        by_organization: dict[str, list[Scoped]] = {}
        for client in clients:
            by_organization.setdefault(client.organization_id, []).append(client)
            self._home[client.organization_id, client.client_id] = client.home
        self._home |= past.homes
        differing = {
            organization_id: sorted(set().union(*(client.labels for client in found)))
            for organization_id, found in by_organization.items()
            if len({client.labels for client in found if client.labels}) > 1
        }
        if self.choice != "split":
            for organization_id, name in past.split.items():
                raise _chosen_otherwise(names[organization_id], "split by scopes", name, "--split-scopes")
            if differing and self.choice is None:
                raise ScopesDiffer(_question(differing, names))
            return
        self.kept_whole = differing.keys() & past.whole.keys()
        for organization_id in () if past.split else sorted(self.kept_whole):
            name = past.whole[organization_id]
            raise _chosen_otherwise(names[organization_id], "whole", name, "--merge-scopes")
        self._split = differing.keys() - past.whole.keys() | past.split.keys()

    def is_split(self, organization_id: str) -> bool:
        """Return whether each scope of an organization becomes one of its own."""
        return organization_id in self._split

    def of_client(self, organization_id: str, client_id: str) -> str | None:
        """Return the scope that a client goes by; None where that does not matter, or it has none."""
        return self._home.get((organization_id, client_id)) if self.is_split(organization_id) else None

    def of_row(self, row: Row, organization_id: str, client_id: str | None) -> str | None:
        """Return the scope that a row goes by: its own label, else that of its client."""
        if not self.is_split(organization_id):
            return None
        tags = numbered_value(row.get("filter_tags"))
        label = tags.get("scope") if isinstance(tags, dict) else None
        if isinstance(label, str):
            return label
        return self.of_client(organization_id, client_id) if client_id else None

    def label(self, organization_id: str, scope: str | None) -> str | None:
        """Return what tells an organization of one scope from the whole; None is the whole."""
        if not self.is_split(organization_id):
            return None
        return "unlabelled" if scope is None else f"scope {scope}"

    def named(self, name: str, organization_id: str, scope: str | None) -> str:
        """Return the name of an organization, or of one scope of it."""
        if not self.is_split(organization_id):
            return name
        return f"{name} ({scope or UNLABELLED})"


def _chosen_otherwise(original: str, made: str, name: str, option: str) -> ChosenOtherwise:
    return ChosenOtherwise(
        f"“{original}” was imported {made} before, as “{name}”; choose {option} as then, or import into "
        "another database."
    )


def _question(differing: Mapping[str, list[str]], names: Mapping[str, str]) -> str:
    parts = [
        f"“{names.get(organization_id) or organization_id}” ({', '.join(label or '“”' for label in labels)})"
        for organization_id, labels in sorted(differing.items())
    ]
    more = f" and {len(parts) - MAX_NAMED} more" if len(parts) > MAX_NAMED else ""
    return (
        f"The clients of one organization have different scopes: {', '.join(parts[:MAX_NAMED])}{more}. "
        "Scopes are not carried over. Choose --merge-scopes to have its clients share what each had, or "
        "--split-scopes to make an organization of each scope."
    )
