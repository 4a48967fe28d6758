"""Bodies sent in chunks: whoever does not know the length beforehand sends none, and Django needs one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

TOO_SLOW = b'{"detail":"The request body came too slowly."}'
TOO_SLOW_HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(TOO_SLOW)))]

WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_length(application: WSGIApplication, *, limit: int) -> WSGIApplication:
    """Return the application, given a body that came in chunks as if it had come with its length.

    Of a body larger than `limit` bytes one more is read, by which the application sees that it is too large.
    Only where the server itself ends the stream (`wsgi.input_terminated`): else reading could wait for ever.
    """

    def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if (
            environ.get("HTTP_TRANSFER_ENCODING")
            and environ.get("wsgi.input_terminated")
            and not environ.get("CONTENT_LENGTH")
        ):
            try:
                body = environ["wsgi.input"].read(limit + 1)
            except TimeoutError:
                start_response("408 Request Timeout", TOO_SLOW_HEADERS)
                return [TOO_SLOW]
            environ["wsgi.input"] = BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return serve
