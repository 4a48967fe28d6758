"""What a caller may do: each view names the permission its caller must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from mirix.tenants.models import Permission, Role
from mirix.tenants.principal import (
    PERMISSION_OF_ROLE,
    RANK,
    RELEASE_QUARANTINED,
    ROLES_WITH,
    Principal,
)
from mirix.tenants.selectors import deciding_roles

if TYPE_CHECKING:
    from rest_framework.views import APIView


class CallerPermission(BasePermission):
    """Require the view's `required_permission`; without one, reading needs `read` and the rest `write`.

    `required_permission` is a `Permission`, or a dict from action name to `Permission` on a viewset. A key
    carries its permission, a member has that of the role.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether the caller may do this; the message names what it would need."""
        if not isinstance(request.auth, Principal):
            return False
        if not _is_offered(request, view):
            return True
        required = self._required(request, view)
        self.message = _refusal(request.auth, required)
        return request.auth.may(required)

    @staticmethod
    def _required(request: Request, view: Any) -> str:
        declared = getattr(view, "required_permission", None)
        if isinstance(declared, dict):
            declared = declared.get(getattr(view, "action", None))
        if declared is not None:
            return str(declared)
        return str(Permission.READ if request.method in SAFE_METHODS else Permission.WRITE)


class RolePermission(BasePermission):
    """Let people do something whose role says so; no key ever does."""

    roles: frozenset[str] = frozenset()
    what = ""
    """What the members of these roles do; it begins the refusal of a key."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether the caller's role is one of those."""
        if not isinstance(request.auth, Principal):
            return False
        if not _is_offered(request, view):
            return True
        if not request.auth.role:
            self.message = f"{self.what} are for members; a key may not decide."
            return False
        roles = self.roles_for(request.auth)
        self.message = _needs_role(request.auth, roles)
        return request.auth.role in roles

    def roles_for(self, caller: Principal) -> frozenset[str]:
        """Return the roles that suffice in the caller's organization."""
        return self.roles


class MayReview(RolePermission):
    """Let those decide on proposals who do in their organization."""

    what = "Decisions"

    def roles_for(self, caller: Principal) -> frozenset[str]:
        """Return the roles that the organization chose."""
        return deciding_roles(organization=caller.organization)


class MayRelease(RolePermission):
    """Let those release what is quarantined who have the permission `release_quarantined`."""

    roles = ROLES_WITH[RELEASE_QUARANTINED]
    what = "Releases"


def _is_offered(request: Request, view: APIView) -> bool:
    """Return whether the view has the method at all; what it has not is a 405, whatever the caller may do."""
    return request.method != "OPTIONS" and hasattr(view, str(request.method).lower())


def _refusal(caller: Principal, required: str) -> str:
    if caller.role:
        enough = {role for role, has in PERMISSION_OF_ROLE.items() if RANK[has] >= RANK[required]}
        return _needs_role(caller, enough)
    return f"This needs a key with the permission “{required}”; this key may “{caller.permission}”."


def _needs_role(caller: Principal, roles: frozenset[str] | set[str]) -> str:
    names = " or ".join(role for role in Role.values if role in roles)
    return f"This needs the role {names}; yours is {caller.role}."
