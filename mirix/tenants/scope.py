"""Request scope: while a request is served, a tenant's rows are read for the organizations it may see alone.

A query of a tenant's rows carries a bound: the organizations that it is limited to. Inside request scope, a
query that is not bound, or bound to an organization that the request may not see, raises `UnscopedQuery`
instead of being run; see `mirix.tenants.querysets`. Outside (worker, commands, tests) there is no scope, and
nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

Organizations = frozenset[str] | None
"""Ids of organizations; None stands for all of them, also those yet to come."""

WHO_CALLS = "finds out who calls"
"""Why authentication reads keys, clients and memberships of whatever organization."""


class Bound(Enum):
    """The bounds of a query that are no list of organizations."""

    NONE = "not bound"
    ALL = "bound to all organizations, for superusers"
    RELEASED = "released on purpose"


_visible: ContextVar[Callable[[], Organizations] | None] = ContextVar("mirix_visible", default=None)


class UnscopedQuery(RuntimeError):
    """A fault in our code: a request was about to read rows that it may not see. Nothing was read."""


@contextmanager
def request_scope(visible: Callable[[], Organizations]) -> Iterator[None]:
    """Serve a request that sees what `visible` returns; it is asked anew for each query."""
    token = _visible.set(visible)
    try:
        yield
    finally:
        _visible.reset(token)


@contextmanager
def outside_request_scope() -> Iterator[None]:
    """Do what belongs to no organization, such as looking whether a value is unique in the whole table."""
    token = _visible.set(None)
    try:
        yield
    finally:
        _visible.reset(token)


def is_in_request() -> bool:
    """Return whether a request is being served."""
    return _visible.get() is not None


def covers(bound: Bound | frozenset[str]) -> bool:
    """Return whether a query with that bound may be run here. Costs no query of its own outside the admin."""
    visible = _visible.get()
    if visible is None or bound is Bound.RELEASED:
        return True
    if bound is Bound.NONE:
        return False
    organizations = visible()
    if organizations is None:
        return True
    return bound is not Bound.ALL and bound <= organizations


def require(organization_id: str) -> None:
    """Raise `UnscopedQuery` where the request may not see that organization; for SQL written by hand."""
    if not covers(frozenset((organization_id,))):
        raise UnscopedQuery(f"This request may not see the organization {organization_id}.")
