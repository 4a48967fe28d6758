"""Sends one request through the openai client, and ends every answer in time and size.

Imports the client, which takes a second: imported where it is needed. Importing it opens no connection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2  # what the client speaks with, and lets its errors pass in a stream
import openai
from openai import DefaultHttpxClient, OpenAI

MAX_ANSWER_BYTES = 10_000_000
MAX_ERROR_BYTES = 65_536
"""What is read of an answer that tells of an error."""
MAX_CONNECT_SECONDS = 10.0

Kind = Literal["answer", "status", "late", "broken", "unreachable", "endless", "impossible"]


@dataclass(frozen=True)
class Outcome:
    """What became of one request."""

    kind: Kind
    body: bytes = b""
    """What was read of the answer."""
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def was_sent(self) -> bool:
        """Whether there was anybody to send it to."""
        return self.kind not in ("unreachable", "impossible")


def connect(*, base_url: str, api_key: str, timeout: float) -> OpenAI:
    """Return a client whose requests take at most `timeout` seconds each; it tries nothing twice."""
    # A server of one's own needs no key, the client insists on one.
    return OpenAI(
        base_url=base_url,
        api_key=api_key or "none",
        max_retries=0,
        timeout=httpx2.Timeout(timeout, connect=min(timeout, MAX_CONNECT_SECONDS)),
        http_client=DefaultHttpxClient(event_hooks={"request": [_begin], "response": [_bound]}),
    )


def send(client: OpenAI, request: dict[str, Any]) -> Outcome:
    """Send one chat request, and return what became of it; raises nothing."""
    body = bytearray()
    try:
        with client.chat.completions.with_streaming_response.create(**request) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    return Outcome("endless")
            return Outcome("answer", bytes(body), response.status_code, response.headers)
    except openai.APIStatusError as error:
        answer = error.response
        return Outcome("status", answer.content, answer.status_code, answer.headers)
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        return Outcome(_broken(error), bytes(body))
    except (openai.OpenAIError, httpx2.InvalidURL, ValueError, TypeError):
        return Outcome("impossible")


def _broken(error: Exception) -> Kind:
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(
        cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol | httpx2.ProxyError
    ):
        return "unreachable"
    return "late" if isinstance(cause, httpx2.TimeoutException) else "broken"


def _begin(request: httpx2.Request) -> None:
    request.extensions["deadline"] = time.monotonic() + request.extensions["timeout"]["read"]


def _bound(response: httpx2.Response) -> None:
    """Let the body end in time, and that of an error in size."""
    extensions = response.request.extensions
    extensions["timeout"]["read"] = max(0.001, extensions["deadline"] - time.monotonic())
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Bounded(
        response.stream, extensions["deadline"], MAX_ERROR_BYTES if response.is_error else None
    )


class _Bounded(httpx2.SyncByteStream):
    """A body that raises when it is late, and is cut where it is longer than `max_bytes`.

    Else a server that sends a byte now and then would never be late.
    """

    def __init__(self, stream: httpx2.SyncByteStream, deadline: float, max_bytes: int | None) -> None:
        self._stream = stream
        self._deadline = deadline
        self._left = max_bytes

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            if time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("the answer came too slowly")
            if self._left is None:
                yield chunk
                continue
            yield chunk[: self._left]
            self._left -= len(chunk)
            if self._left <= 0:
                return

    def close(self) -> None:
        self._stream.close()
