"""How many requests a minute: per caller and kind of route, counted exactly.

A view says its kind by `route_kind`; without, reading is `read` and the rest `write`. The limits are the
settings `MIRIX_THROTTLE_<KIND>`, 0 for none. A caller is a key, a client or a member; whoever shows no valid
credential is counted by address.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework.exceptions import Throttled
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from mirix.api.addresses import site_of
from mirix.counting import counter
from mirix.tenants.principal import Principal

if TYPE_CHECKING:
    from rest_framework.views import APIView

WINDOW_SECONDS = 60.0


class RouteThrottle(BaseThrottle):
    """Refuse with 429 and Retry-After what is over the limit of the caller and the kind of route."""

    seconds_left = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request; return whether it is within the limit."""
        self.seconds_left = _over(_kind_of(request, view), _who(request))
        return not self.seconds_left

    def wait(self) -> int:
        """Return the seconds after which the caller may try again."""
        return ceil(self.seconds_left)


def throttle_refused(request: Request) -> None:
    """Count a request without a valid credential; raises `Throttled` where its address sends too many.

    Counted apart from logins, so that a host with a stale key keeps nobody behind the same address out.
    """
    if left := _over("auth", f"refused:{site_of(request)}"):
        raise Throttled(wait=ceil(left))


def _over(kind: str, who: str) -> float:
    """Count one more; return the seconds until `who` may call again, 0 while within the limit."""
    limit: int = getattr(settings, f"MIRIX_THROTTLE_{kind.upper()}")
    if limit <= 0:
        return 0.0
    count, left = counter.hit(f"throttle:{kind}:{who}", WINDOW_SECONDS)
    return max(left, 0.001) if count > limit else 0.0


def _who(request: Request) -> str:
    caller = request.auth
    if isinstance(caller, Principal):
        return f"{caller.organization.pk}:{caller.identity}"
    return site_of(request)


def _kind_of(request: Request, view: Any) -> str:
    kind: str | None = getattr(view, "route_kind", None)
    return kind or ("read" if request.method in SAFE_METHODS else "write")
