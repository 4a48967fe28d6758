"""The one parser of request bodies: JSON, bounded in size and depth, every fault a clear 4xx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from mirix import strict_json

TOO_DEEP = "The JSON is nested too deeply."


class TooLarge(APIException):
    """413: the body is larger than `MIRIX_MAX_REQUEST_BYTES`."""

    status_code = 413
    default_code = "too_large"

    def __init__(self) -> None:
        super().__init__(f"The request body is larger than {settings.MIRIX_MAX_REQUEST_BYTES} bytes.")


class StrictJSONParser(BaseParser):
    """Parse a JSON body as the standard has it: UTF-8, no NaN, no key twice in one object."""

    media_type = "application/json"
    renderer_class = JSONRenderer

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON value. Raises `ParseError` (400) or `TooLarge` (413)."""
        body = _read(stream, parser_context)
        try:
            return strict_json.loads(body.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ParseError(f"The body is not UTF-8: {error.reason} at byte {error.start}.") from error
        except RecursionError as error:
            raise ParseError(TOO_DEEP) from error
        except ValueError as error:
            raise ParseError(f"The body is not valid JSON: {error}.") from error


def _read(stream: IO[bytes], parser_context: Mapping[str, Any] | None) -> bytes:
    request = (parser_context or {}).get("request")
    length = request.META.get("CONTENT_LENGTH") if request is not None else None
    limit = settings.MIRIX_MAX_REQUEST_BYTES
    if length and length.isdigit() and int(length) > limit:
        raise TooLarge
    try:
        body = stream.read(limit + 1)
    except RequestDataTooBig as error:
        raise TooLarge from error
    if len(body) > limit:
        raise TooLarge
    return body


def refuse_body(request: Request) -> None:
    """Raise `ParseError` for a body that is more than an empty object, where a route takes none."""
    if request.data != {}:
        raise ParseError("This request takes no body.")
