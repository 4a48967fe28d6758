"""What a caller may do: each view names the permission its key must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from mirix.tenants.models import Permission
from mirix.tenants.principal import Principal

if TYPE_CHECKING:
    from rest_framework.views import APIView


class KeyPermission(BasePermission):
    """Require the view's `required_permission`; without one, reading needs `read` and the rest `write`.

    `required_permission` is a `Permission`, or a dict from action name to `Permission` on a viewset.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return whether the caller's key covers this request; the message names what it would need."""
        if not isinstance(request.auth, Principal):
            return False
        required = self._required(request, view)
        self.message = (
            f"This needs a key with the permission “{required}”; this key may “{request.auth.permission}”."
        )
        return request.auth.may(required)

    @staticmethod
    def _required(request: Request, view: Any) -> str:
        declared = getattr(view, "required_permission", None)
        if isinstance(declared, dict):
            declared = declared.get(getattr(view, "action", None))
        if declared is not None:
            return str(declared)
        return str(Permission.READ if request.method in SAFE_METHODS else Permission.WRITE)
