"""A page for whoever decided in the admin when somebody else just erased or changed the same."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from django.http.response import HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from mirix.collisions import StillColliding, is_collision
from mirix.ids import is_id
from mirix.logs import route_of

PAGES = "/admin/"
WAIT_SECONDS = 5
logger = logging.getLogger(__name__)


class CollisionMiddleware:
    """Answers 409 where a change in the admin came across another one, 503 where it did again and again.

    Nothing of it was stored then.

    Erased rows are found missing by the locks that services take. Whatever else is missing, while all that
    the request names is there, is a fault of ours.
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
        if not (is_collision(error) or (isinstance(error, ObjectDoesNotExist) and _is_gone(request))):
            return None
        logger.warning("%s came across another change (%s)", route_of(request), type(error).__name__)
        if isinstance(error, StillColliding):
            page = render_to_string("503.html", request=request)
            return HttpResponse(page, status=503, headers={"Retry-After": str(WAIT_SECONDS)})
        return HttpResponse(render_to_string("409.html", request=request), status=409)


def _is_gone(request: HttpRequest) -> bool:
    """Return whether a row that the address or the form names is there no more, for who asks."""
    match = request.resolver_match
    address = [unquote(match.kwargs.get("object_id", ""))] if match else []
    sent = [value for values in dict(request.POST.lists()).values() for value in values]
    return any(_is_missing(request, named) for named in (*address, *sent) if is_id(named))


def _is_missing(request: HttpRequest, pk: str) -> bool:
    for model, page in admin.site._registry.items():
        made_by = model._meta.pk.default if model._meta.pk else None
        if isinstance(made_by, partial) and made_by.args == (pk.partition("-")[0],):
            return not page.get_queryset(request).filter(pk=pk).exists()
    return False
