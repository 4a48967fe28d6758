"""What can go wrong with a call, by status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_DETAIL = 500


class MirixError(Exception):
    """A call that failed; the class for statuses that have none of their own.

    `status` is that of the answer, None where there was none. `detail` says what is wrong in one text.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        fields: Mapping[str, list[str]] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.fields: dict[str, list[str]] = dict(fields or {})
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status}: {self.detail}" if self.status else self.detail


class BadRequest(MirixError):
    """400: `fields` has the messages for each field that is wrong, where the server names fields."""


class Unauthorized(MirixError):
    """401: no key, or one that is wrong, expired or revoked."""


class Forbidden(MirixError):
    """403: the key may not do this; a read key, for instance, cannot add."""


class NotFound(MirixError):
    """404: not there, or not yours."""


class Conflict(MirixError):
    """409: an idempotency key of another request, or a run with other parameters goes on."""


class TooLarge(MirixError):
    """413: the request is larger than the server takes; send the session in several."""


class Throttled(MirixError):
    """429: too many requests; `retry_after` says after how many seconds to come back, where it is known."""


class ServerError(MirixError):
    """5xx: of the server or a proxy before it; `retry_after` as with `Throttled`."""


class Unreachable(MirixError):
    """No whole answer came: no connection, a lost one, or silence for longer than the timeout.

    `sent` says whether the request may have arrived, and been done.
    """

    def __init__(self, detail: str, *, sent: bool = True) -> None:
        super().__init__(detail)
        self.sent = sent


BY_STATUS: dict[int, type[MirixError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: Throttled,
}


def error_of(*, status: int, body: Any, otherwise: str, retry_after: float | None) -> MirixError:
    """Return the error for an answer; `body` is its JSON, and `otherwise` its detail where that says none."""
    kind = BY_STATUS.get(status, ServerError if status >= 500 else MirixError)
    said = body if isinstance(body, dict) else {}
    fields = {str(name): _texts(value) for name, value in said.items() if name != "detail"}
    parts = [
        *_texts(said.get("detail", [])),
        *(f"{name}: {' '.join(messages)}" for name, messages in fields.items()),
    ]
    detail = "; ".join(parts) or otherwise
    return kind(detail[:MAX_DETAIL], status=status, fields=fields, retry_after=retry_after)


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
