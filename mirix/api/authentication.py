"""Who calls: the key in the `X-API-Key` header."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from mirix.tenants.principal import Principal
from mirix.tenants.selectors import find_principal


class ApiKeyAuthentication(BaseAuthentication):
    """Resolve `X-API-Key` to a `Principal`, which becomes `request.user` and `request.auth`.

    A key that is unknown, revoked or expired gives one and the same 401.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Principal] | None:
        """Return the principal twice; None without the header, so that permissions answer 401."""
        key = request.headers.get("X-API-Key", "")
        if not key:
            return None
        principal = find_principal(key=key)
        if principal is None:
            raise AuthenticationFailed("The API key is unknown, expired or revoked.")
        return principal, principal

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge; with it a missing credential is a 401 and not a 403."""
        return "X-API-Key"


def principal_of(request: Request) -> Principal:
    """Return who calls; for views behind `CallerPermission`, where there always is one."""
    assert isinstance(request.auth, Principal)
    return request.auth
