"""Querysets of tenants' rows, which refuse to be evaluated inside request scope unless they are bound.

The bound sits in the query, so that it follows every clone, and is checked where any query is turned into
SQL: fetching, counting, updating, subqueries and all. A query is bound by

- `for_organization`, `for_organizations`, `for_owner`, `with_organization_of` or `with_owner_of`;
- being reached from a row of a tenant: `session.turns`, a prefetch;
- standing in another query whose rows it is joined to by an `OuterRef` of a key;
- `unscoped(reason)`, for the few that belong to no organization.

Django's own work on rows that are held already (following a foreign key, `save`, `refresh_from_db`, cascades)
goes through the plain base manager; that a row's foreign keys stay within its organization is the database's
part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from django.db.models import Model, QuerySet, sql
from django.db.models.expressions import Col
from django.db.models.lookups import Exact
from django.db.models.query import RawQuerySet
from django.db.models.sql.where import AND

from mirix.tenants import scope
from mirix.tenants.scope import Bound, UnscopedQuery

if TYPE_CHECKING:
    from mirix.tenants.models import Organization
    from mirix.tenants.owners import Owner


class TenantQuery(sql.Query):
    """A query of one tenant model that knows which organizations it is limited to."""

    model: Any
    bound: Bound | frozenset[str] = Bound.NONE

    def require_bound(self) -> None:
        """Raise `UnscopedQuery` where the request that is being served may not run this query."""
        if scope.covers(self.bound) or self.is_empty() or self._follows_outer_row():
            return
        how = self.bound.value if isinstance(self.bound, Bound) else f"bound to {', '.join(self.bound)}"
        raise UnscopedQuery(
            f"A query of {self.model._meta.label} inside a request is {how}. Start it with "
            "for_organization() or for_owner() of what the request may see, or with unscoped(reason)."
        )

    def get_compiler(self, using: Any = None, connection: Any = None, elide_empty: bool = True) -> Any:
        """Return what makes SQL of the query; every evaluation passes here, that of subqueries too."""
        self.require_bound()
        return super().get_compiler(using, connection, elide_empty)

    def chain(self, klass: Any = None) -> Any:
        """Return a copy; as another class (an update) it passes here for the last time."""
        if klass is not None:
            self.require_bound()
        return super().chain(klass)

    def combine(self, rhs: sql.Query, connector: str) -> None:
        """Merge `rhs` into this query: with AND one bound is enough, with OR both count."""
        super().combine(rhs, connector)
        self.bound = _combined(self.bound, getattr(rhs, "bound", Bound.NONE), connector)

    def _follows_outer_row(self) -> bool:
        """Return whether this is a subquery whose rows are tied to a row of the outer query by a key."""
        return self.subquery and any(
            isinstance(condition, Exact)
            and isinstance(condition.lhs, Col)
            and isinstance(condition.rhs, Col)
            and condition.rhs.alias in self.external_aliases
            and (condition.lhs.target.is_relation or condition.lhs.target.primary_key)
            for condition in self.where.children
        )


def _combined(
    left: Bound | frozenset[str], right: Bound | frozenset[str], connector: str
) -> Bound | frozenset[str]:
    if connector == AND:
        return right if left is Bound.NONE else left
    for weakest in Bound:
        if weakest in (left, right):
            return weakest
    assert isinstance(left, frozenset)
    assert isinstance(right, frozenset)
    return left | right


class TenantQuerySet(QuerySet):
    """Rows that belong to an organization, by the model's `organization_key`."""

    model: Any
    query: Any

    def __init__(
        self,
        model: type[Model] | None = None,
        query: sql.Query | None = None,
        using: str | None = None,
        hints: dict[str, Model] | None = None,
    ) -> None:
        super().__init__(model, query or TenantQuery(model), using, hints)

    def for_organization(self, organization: Organization) -> Self:
        """Rows of one organization."""
        return self.for_organizations((organization.pk,))

    def for_organizations(self, ids: Iterable[str] | None) -> Self:
        """Rows of the organizations of these ids; None stands for all, which superusers may see."""
        if ids is None:
            rows = self.all()
            rows.query.bound = Bound.ALL
            return rows
        bound = frozenset(ids)
        key = self.model.organization_key
        condition = {key: next(iter(bound))} if len(bound) == 1 else {f"{key}__in": sorted(bound)}
        rows = self.filter(**condition)
        rows.query.bound = bound
        return rows

    def with_organization_of(self, row: Any) -> Self:
        """Rows of the organization that `row` belongs to."""
        return self.for_organizations((getattr(row, row.organization_key),))

    def unscoped(self, reason: str) -> Self:
        """Rows of whatever organization, also inside a request; `reason` says to the reader why."""
        if not reason.strip():
            raise ValueError("Say why this query belongs to no organization.")
        rows = self.all()
        rows.query.bound = Bound.RELEASED
        return rows

    def raw(self, *args: Any, **kwargs: Any) -> RawQuerySet:
        """Refuse inside a request, unless `unscoped` says why: nothing is known of the rows of such SQL."""
        if scope.is_in_request() and self.query.bound is not Bound.RELEASED:
            raise UnscopedQuery(f"raw() of {self.model._meta.label} inside a request.")
        return super().raw(*args, **kwargs)

    def __or__(self, other: Any) -> Any:
        self._refuse_slices(other)
        return super().__or__(other)

    def __xor__(self, other: Any) -> Any:
        self._refuse_slices(other)
        return super().__xor__(other)

    def _refuse_slices(self, other: Any) -> None:
        # Django would go on with the base manager's query, whose bound nobody knows.
        if self.query.is_sliced or other.query.is_sliced:
            raise TypeError("Combine the querysets before they are sliced.")

    def _add_hints(self, **hints: Any) -> None:
        """Take the bound of the row that this queryset is reached from: a related manager or a prefetch."""
        super()._add_hints(**hints)  # type: ignore[misc]  # private, and so not in the stubs
        parent = hints.get("instance")
        if self.query.bound is Bound.NONE and (organization := organization_id_of(parent)) is not None:
            self.query.bound = frozenset((organization,))

    def _raw_delete(self, using: str | None) -> int:
        self.query.require_bound()
        return super()._raw_delete(using)


class OwnedQuerySet(TenantQuerySet):
    """Rows that belong to an owner."""

    def for_owner(self, owner: Owner) -> Self:
        """Rows of one end user of one organization."""
        return self.for_organization(owner.organization).filter(end_user=owner.end_user)

    def with_owner_of(self, row: Any) -> Self:
        """Rows of the owner that `row` belongs to."""
        return self.with_organization_of(row).filter(end_user=row.end_user_id)


def organization_id_of(row: object) -> str | None:
    """Return the id of the organization that a loaded row belongs to; None where that is not known."""
    key = getattr(type(row), "organization_key", "")
    return row.__dict__.get(key) if key else None
