"""Each request has an id: in every line of the log that it causes, and in its answer as `X-Request-ID`.

A proxy of ours may have given it one; from anybody else it would be the caller's words.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.utils.log import log_response

from mirix.ids import new_id
from mirix.logs import about, route_of

HEADER = "X-Request-ID"
KNOWN = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
logger = logging.getLogger(__name__)


class RequestLogMiddleware:
    """Gives the id, and with `MIRIX_LOG_REQUESTS` leaves a line for each request that came to a route."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        request_id = _id_of(request)
        began = perf_counter()
        with about(request_id=request_id):
            response = self.get_response(request)
            if isinstance(response, HttpResponse) and response.status_code >= 400:
                # Django would do it outside of this block, and leaves alone what is logged already.
                log_response(
                    "%s: %s", response.reason_phrase, request.path, response=response, request=request
                )
            if settings.MIRIX_LOG_REQUESTS and request.resolver_match is not None:
                _tell(request, response, perf_counter() - began)
        response[HEADER] = request_id
        return response


def _id_of(request: HttpRequest) -> str:
    given = request.headers.get(HEADER, "") if settings.MIRIX_TRUSTED_PROXIES else ""
    return given if KNOWN.fullmatch(given) else new_id("req")


def _tell(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    caller: Any = getattr(request, "auth", None)
    fields = {
        "method": request.method,
        "route": route_of(request),
        "status": response.status_code,
        "seconds": round(seconds, 4),
        "caller": getattr(caller, "identity", ""),
        "organization": caller.organization.pk if hasattr(caller, "organization") else "",
    }
    logger.info("%(method)s %(route)s %(status)s in %(seconds)s s", fields, extra={"fields": fields})
