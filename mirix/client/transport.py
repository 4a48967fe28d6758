"""Requests over HTTP: connections that are kept, answers read against a clock, and what is tried again."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import re
import selectors
import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from mirix.client.errors import MirixError, Unreachable, error_of

logger = logging.getLogger("mirix.client")
CHUNK = 65_536
FIRST_PAUSE_SECONDS, LONGEST_BACKOFF_SECONDS = 0.5, 8.0
GOOD = frozenset({200, 201, 202})
MOVED = frozenset({301, 302, 303, 307, 308})
REFUSED = frozenset({429, 503})
"""The server says that it did nothing, and to come again."""
LOST = frozenset({502, 504})
"""A proxy's words for a connection that it lost: the request may have been done."""


class Key:
    """An API key that no repr, log or traceback shows."""

    def __init__(self, text: str) -> None:
        if not text or not is_header(text):
            raise ValueError("The API key must be one line of printable ASCII characters.")
        self._text = text

    def __repr__(self) -> str:
        return "Key(…)"

    def reveal(self) -> str:
        """Return the key itself, to be sent."""
        return self._text

    def hide(self, body: bytes) -> bytes:
        """Return an answer without the key, should somebody have sent it back."""
        return body.replace(self._text.encode(), "…".encode())


def is_header(text: str) -> bool:
    """Return whether a text can be the value of a header as it is."""
    return text.isascii() and text.isprintable() and text == text.strip()


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request. `repeatable`: doing it twice does no more than doing it once."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    patience: float = 0.0
    """Seconds that the server may take besides the timeout."""


class Transport:
    """Sends calls to one server; may be used by several threads at once, and after a fork."""

    def __init__(
        self, base_url: str, key: Key, *, timeout: float, retries: int, longest_pause: float
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("base_url must be an address like https://mirix.example.com")
        if parts.username is not None or parts.password is not None:
            raise ValueError("base_url may hold no name or password.")
        self.base_url = base_url.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._root = quote(parts.path.rstrip("/"), safe="/%")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._key = key
        self._timeout, self._retries, self._longest_pause = timeout, retries, longest_pause
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()

    def send(self, call: Call) -> Any:
        """Return the JSON object of a good answer; raises `MirixError` when no try brings one."""
        for left in range(self._retries, -1, -1):
            try:
                return self._try(call)
            except MirixError as error:
                pause = self._pause(call, error, self._retries - left)
                if not left or pause is None:
                    raise
                logger.warning("%s %s: %s; again in %.1f s", call.method, call.path, error, pause)
                sleep(pause)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections that are kept."""
        while connection := self._pop():
            connection.close()

    def _pause(self, call: Call, error: MirixError, tries: int) -> float | None:
        """Return the seconds before the next try, None where there shall be none."""
        if not _worth_another(call, error):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self._longest_pause else None
        backoff = min(FIRST_PAUSE_SECONDS * 2**tries, LONGEST_BACKOFF_SECONDS, self._longest_pause)
        return backoff * random.uniform(0.5, 1.0)  # noqa: S311  (spreads callers, guards nothing)

    def _try(self, call: Call) -> Any:
        seconds = self._timeout + call.patience
        deadline = monotonic() + seconds
        # Of a kept connection nobody knows whether it lives: what cannot be repeated gets a new one.
        connection = (call.repeatable and self._kept(seconds)) or self._connected(seconds)
        whole = False
        try:
            response = self._ask(connection, call)
            body = _read(response, deadline)
            whole = not response.will_close
        except (OSError, http.client.HTTPException) as error:
            reason = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else _reason(error)
            # Without its traceback, whose frames hold the headers.
            raise Unreachable(f"{self.base_url} did not answer: {reason}") from error.with_traceback(None)
        finally:
            if whole:
                self._idle.append(connection)
            else:
                connection.close()
        if response.status in GOOD and isinstance(answer := _json(body), dict):
            return answer
        body = self._key.hide(body)
        raise _error(response, body)

    def _kept(self, seconds: float) -> http.client.HTTPConnection | None:
        """Return a connection that was kept and has not ended, if there is one."""
        if self._process != os.getpid():  # after a fork they are the parent's
            self._process, self._idle = os.getpid(), deque()
        while connection := self._pop():
            if not has_ended(connection):
                connection.sock.settimeout(seconds)
                return connection
            connection.close()
        return None

    def _pop(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # asked for, and not looked whether it is empty, as other threads take from it
            return None

    def _connected(self, seconds: float) -> http.client.HTTPConnection:
        """Return a new connection."""
        connection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        )
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:  # the latter for what can be no name of a host
            connection.close()
            raise Unreachable(f"{self.base_url} cannot be reached: {_reason(error)}", sent=False) from error
        return connection

    def _ask(self, connection: http.client.HTTPConnection, call: Call) -> http.client.HTTPResponse:
        target = self._root + call.path + (f"?{urlencode(call.query)}" if call.query else "")
        headers = {"Accept": "application/json", **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        # Whoever refuses a request may answer before it has read all of it.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(call.method, target, call.body, headers | {"X-API-Key": self._key.reveal()})
        return connection.getresponse()


def _error(response: http.client.HTTPResponse, body: bytes) -> MirixError:
    """Return the error that an answer means."""
    is_moved = response.status in MOVED
    aside = "the server has another address" if is_moved else f"not an answer of mirix: {_plain(body)}"
    return error_of(
        status=response.status,
        body=_json(body),
        otherwise=f"{response.reason}; {aside}",
        retry_after=_seconds(response.getheader("Retry-After")),
    )


def _worth_another(call: Call, error: MirixError) -> bool:
    match error:
        case Unreachable():
            hopeless = isinstance(error.__cause__, ssl.SSLCertVerificationError)
            return not hopeless and (call.repeatable or not error.sent)
        case _:
            return error.status in REFUSED or (call.repeatable and error.status in LOST)


def json_bytes(value: Any) -> bytes:
    """Return JSON in ASCII, which carries every text, lone surrogates too.

    Takes what agents have at hand: besides JSON's own types models with `model_dump`, as the clients of
    providers return them, dataclasses, times and mappings. Raises `TypeError` and `ValueError` for the rest.
    """
    return json.dumps(value, default=_as_json, allow_nan=False, separators=(",", ":")).encode("ascii")


def _as_json(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON.")


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """Return the whole body; raises `TimeoutError` when it takes too long, though bytes trickle in."""
    parts = []
    while chunk := response.read1(CHUNK):
        parts.append(chunk)
        if monotonic() > deadline:
            raise TimeoutError
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    response.close()  # its connection can be used again
    return b"".join(parts)


def has_ended(connection: http.client.HTTPConnection) -> bool:
    """Return whether an idle connection has something to read: its end, as nothing was asked."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _json(body: bytes) -> Any:
    """Return the JSON of an answer, None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _plain(body: bytes) -> str:
    """Return the words of a page."""
    text = re.sub(r"<[^>]*>", " ", body[:CHUNK].decode("utf-8", "replace"))
    return " ".join("".join(char if char.isprintable() else " " for char in text).split()) or "nothing"


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header means, as a number or as a date."""
    if not retry_after:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
