"""A page for whoever decided in the admin when somebody else just erased or changed the same."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from mirix.collisions import is_collision
from mirix.logs import route_of

PAGES = "/admin/"
logger = logging.getLogger(__name__)


class CollisionMiddleware:
    """Answers 409 where a change in the admin came across another one; nothing of it was stored.

    Erased rows are found missing by the locks that services take; any other page has looked before.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page; None for every other error."""
        if request.method != "POST" or not request.path_info.startswith(PAGES):
            return None
        if not (is_collision(error) or isinstance(error, ObjectDoesNotExist)):
            return None
        logger.warning("%s came across another change (%s)", route_of(request), type(error).__name__)
        return HttpResponse(render_to_string("409.html", request=request), status=409)
