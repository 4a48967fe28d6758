"""What browsers are told about every answer: where its scripts may come from, and what it may be used for.

Nothing is fetched from elsewhere, so that each policy begins with nothing and names what its pages need:

- answers of the API are data, and no page at all;
- the admin has no script in its pages, only files of its own. Its theme evaluates expressions that stand in
  attributes (Alpine), which needs `unsafe-eval`, and sets styles where they stand;
- the page of the routes has its files, and asks the API itself.
"""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
ADMIN = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
DOCS = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
EVERYWHERE = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
ADMIN_PREFIX, DOCS_PATH = "/admin/", "/docs"


class HeadersMiddleware:
    """Adds what a view has not said itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        response = self.get_response(request)
        for name, value in EVERYWHERE.items():
            response.setdefault(name, value)
        if not (settings.DEBUG and response.status_code >= 400):  # Django's debug pages hold scripts
            response.setdefault("Content-Security-Policy", policy(request.path_info))
        # Files say for how long they hold; what people and agents wrote is kept by no cache.
        response.setdefault("Cache-Control", "no-store")
        return response


def policy(path: str) -> str:
    """Return the policy of what is served at `path`."""
    if path.startswith(ADMIN_PREFIX):
        return ADMIN
    return DOCS if path == DOCS_PATH else CLOSED
