"""What the request that is being served may see: an API caller its organization, the admin's user theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import HttpRequest, HttpResponse

from mirix.tenants.models import Membership
from mirix.tenants.principal import Principal
from mirix.tenants.scope import WHO_CALLS, Organizations, request_scope

ADMIN = "/admin/"
NOTHING: frozenset[str] = frozenset()


class RequestScopeMiddleware:
    """Serve every request inside request scope; before its caller is known, it sees nothing."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request."""
        with request_scope(partial(visible_organizations, request)):
            return self.get_response(request)


def visible_organizations(request: HttpRequest) -> Organizations:
    """Return the ids of the organizations whose rows the request may read; None stands for all.

    Under the admin it is the session that says who asks, everywhere else the credential that the API has
    checked: a session opens nothing there.
    """
    if request.path_info.startswith(ADMIN):
        ids = organization_ids(request)
        return None if ids is None else frozenset(ids)
    caller = getattr(request, "auth", None)
    return frozenset((caller.organization.pk,)) if isinstance(caller, Principal) else NOTHING


def organization_ids(request: HttpRequest) -> list[str] | None:
    """Return the ids of the organizations of the admin's user; None stands for all, for superusers."""
    return None if getattr(request.user, "is_superuser", False) else sorted(roles(request))


def roles(request: HttpRequest) -> dict[str, str]:
    """Return the user's role by organization id; one query per request, empty for strangers."""
    kept: dict[str, str] | None = request.__dict__.get("_mirix_roles")
    if kept is None:
        kept = request.__dict__["_mirix_roles"] = _roles_of(request)
    return kept


def _roles_of(request: HttpRequest) -> dict[str, str]:
    if not request.user.is_authenticated:
        return {}
    memberships = Membership.objects.unscoped(WHO_CALLS)
    return dict(memberships.filter(user=request.user.pk).values_list("organization_id", "role"))
