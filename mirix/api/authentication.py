"""Who calls: a client by its key, a person by a token, or a client by its id where that is trusted."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from mirix.api.throttles import throttle_refused
from mirix.tenants.principal import Principal
from mirix.tenants.selectors import find_principal, find_trusted_client
from mirix.tenants.tokens import find_person

CHALLENGE = 'ApiKey realm="mirix", Bearer realm="mirix"'
REFUSED = "This needs a valid credential."


class CallerAuthentication(BaseAuthentication):
    """Resolve a request's credentials to a `Principal`, which becomes `request.user` and `request.auth`.

    Looked at in this order: the key in `X-API-Key`, the token in `Authorization: Bearer`, and, where
    `MIRIX_TRUST_CLIENT_ID_HEADER` is set, the id in `X-Client-ID`. The first one that is valid says who
    calls. None at all and none that is valid are one and the same 401.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Principal]:
        """Return the principal twice. Raises `AuthenticationFailed` without a valid credential.

        Of an address that sends too many of these, `Throttled`.
        """
        principal = next((found for found in _found(request) if found), None)
        if principal is None:
            throttle_refused(request)
            raise AuthenticationFailed(REFUSED)
        return principal, principal

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge; with it a missing credential is a 401 and not a 403."""
        return CHALLENGE


def _found(request: Request) -> Iterator[Principal | None]:
    if key := request.headers.get("X-API-Key", ""):
        yield find_principal(key=key)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        yield find_person(access=token.strip())
    client_id = request.headers.get("X-Client-ID", "")
    if client_id and settings.MIRIX_TRUST_CLIENT_ID_HEADER:
        yield find_trusted_client(client_id=client_id)


def principal_of(request: Request) -> Principal:
    """Return who calls; for views behind `CallerAuthentication`, where there always is one."""
    assert isinstance(request.auth, Principal)
    return request.auth
