"""Every error of the API as JSON: `{"detail": …}` or `{field: [messages]}`, never HTML or a stack trace."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import (
    NON_FIELD_ERRORS,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    ValidationError,
)
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views import defaults
from psycopg.errors import DiskFull
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from mirix.api.parsers import TooLarge
from mirix.collisions import is_collision, points_at_nothing
from mirix.faults import words_of
from mirix.logs import route_of

logger = logging.getLogger(__name__)
NOT_FOUND = {"detail": "Not found."}
BAD_REQUEST = {"detail": "Bad request."}
INTERNAL = {"detail": "Internal error; it has been logged."}
ERASED = "What this request is about was erased while it was on its way; nothing of it was stored."
PAGES = "/admin/"
COMPACT = {"separators": (",", ":")}  # as DRF writes, so that no byte tells who answered


class Conflict(exceptions.APIException):
    """409: the request contradicts what is stored."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = "The request conflicts with what is stored."
    default_code = "conflict"


class TooSlow(exceptions.APIException):
    """408: the body did not come in time, or its sender has gone."""

    status_code = status.HTTP_408_REQUEST_TIMEOUT
    default_detail = "The request body came too slowly."
    default_code = "too_slow"


class Unavailable(exceptions.APIException):
    """503: something that mirix depends on is down; the caller may try again."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_detail = "The database is not available; try again shortly."
    default_code = "unavailable"
    wait = 5


class Busy(Unavailable):
    """503: another change came across; nothing of this one was stored."""

    default_detail = "Another change came across this one; nothing of it was stored. Try again shortly."
    wait = 1


class NoRoom(Unavailable):
    """503: the disk of the database is full."""

    default_detail = "The database has no room left; try again when an operator has made some."


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Translate an exception of a view into the answer of the contract's status table.

    What is left is a fault of ours: logged with its traceback here, a bare 500 for the caller. The answer is
    JSON also where the view shows a page, and a body of its own: renderers may write into it.
    """
    if request := context.get("request"):
        request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
    match error:
        case ValidationError():
            error = exceptions.ValidationError(_fields(error))
        case RequestDataTooBig():
            error = TooLarge()
        case UnreadablePostError():
            error = TooSlow()
        case TooManyFieldsSent():
            error = exceptions.ParseError("The query has too many parameters.")
        case SuspiciousOperation():
            error = exceptions.ParseError(BAD_REQUEST["detail"])
        case DatabaseError() | InterfaceError():
            error = _of_database(error)
    response = drf_exception_handler(error, context)
    if response is None:
        logger.error("unhandled error in %s", route_of(request), exc_info=error)
        return Response(dict(INTERNAL), status=500)
    if response.status_code == status.HTTP_404_NOT_FOUND:
        response.data = dict(NOT_FOUND)  # the same bytes whether a row is missing or somebody else's
    return response


def _of_database(error: Exception) -> Exception:
    """Translate what the database says of the world; the rest are faults of ours, and stay what they are."""
    if points_at_nothing(error):
        return Conflict(ERASED)
    if is_collision(error):
        logger.warning("came across another change (%s)", type(error).__name__)
        return Busy()
    if isinstance(error, OperationalError | InterfaceError):
        logger.warning("database unavailable: %s", words_of(error))
        return NoRoom() if isinstance(error.__cause__, DiskFull) else Unavailable()
    return error


def _fields(error: ValidationError) -> dict[str, list[str]]:
    if not hasattr(error, "error_dict"):
        return {"detail": error.messages}
    return {
        ("detail" if field == NON_FIELD_ERRORS else field): messages
        for field, messages in error.message_dict.items()
    }


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for requests that Django refuses before a view sees them."""
    return _json_or(defaults.bad_request, request, exception, BAD_REQUEST, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer where Django refuses a request."""
    return _json_or(defaults.permission_denied, request, exception, {"detail": "Forbidden."}, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for unknown paths, the same bytes as for missing rows."""
    return _json_or(defaults.page_not_found, request, exception, NOT_FOUND, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for faults outside the API's views; Django has logged the traceback."""
    if request.path_info.startswith(PAGES):
        return defaults.server_error(request)
    return JsonResponse(INTERNAL, status=500, json_dumps_params=COMPACT)


def _json_or(
    page: Callable[[HttpRequest, Exception], HttpResponse],
    request: HttpRequest,
    exception: Exception,
    answer: dict[str, str],
    status_code: int,
) -> HttpResponse:
    """Answer programs in JSON and people, under the admin, with Django's page."""
    if request.path_info.startswith(PAGES):
        return page(request, exception)
    return JsonResponse(answer, status=status_code, json_dumps_params=COMPACT)
