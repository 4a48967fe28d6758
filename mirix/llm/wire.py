"""Sends one request through the openai client, and ends every answer in time and size.

Imports the client, which takes a second: imported where it is needed. Importing it opens no connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpcore2
import httpx2  # what the client speaks with, and lets its errors pass in a stream
import openai
from openai import DefaultHttpxClient, OpenAI

MAX_ANSWER_BYTES = 10_000_000
MAX_ERROR_BYTES = 65_536
"""What is read of an answer that tells of an error."""
MAX_CONNECT_SECONDS = 10.0

UNREACHABLE = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol)

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


_thread = threading.local()
"""Until when the request of this thread has time; it sends one after the other and reads them itself."""


def connect(*, base_url: str, api_key: str, timeout: float) -> OpenAI:
    """Return a client whose requests take at most `timeout` seconds each; it tries nothing twice."""
    # A server of one's own needs no key, the client insists on one.
    return OpenAI(
        base_url=base_url,
        api_key=api_key or "none",
        max_retries=0,
        timeout=httpx2.Timeout(timeout, connect=min(timeout, MAX_CONNECT_SECONDS)),
        # What is sent is for that address alone, so redirects are not followed.
        http_client=DefaultHttpxClient(
            follow_redirects=False, event_hooks={"request": [_watch], "response": [_cut]}
        ),
    )


def send(client: OpenAI, request: dict[str, Any], *, timeout: float) -> Outcome:
    """Send one chat request, and return what became of it after at most about `timeout` seconds."""
    body = bytearray()
    _thread.deadline = time.monotonic() + timeout
    try:
        # As a stream: else an answer without an end would fill the memory.
        with client.chat.completions.with_streaming_response.create(**request) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    return Outcome("endless")
            return Outcome("answer", bytes(body), response.status_code, response.headers)
    except openai.APIStatusError as error:
        answer = error.response
        # Cut once more, for it may have been packed.
        return Outcome("status", answer.content[:MAX_ERROR_BYTES], answer.status_code, answer.headers)
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        return Outcome(_broken(error), bytes(body))
    except (openai.OpenAIError, httpx2.InvalidURL, ValueError, TypeError):
        return Outcome("impossible")


def _broken(error: Exception) -> Kind:
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, UNREACHABLE):
        return "unreachable"
    return "late" if isinstance(cause, httpx2.TimeoutException) else "broken"


def _watch(request: httpx2.Request) -> None:
    request.extensions["trace"] = _on_event


def _on_event(event: str, info: dict[str, Any]) -> None:
    """Let no new connection be read beyond the deadline.

    The client's own limit holds for each read alone: a server that sends a byte now and then, be it of the
    head, would never be late.
    """
    if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        return
    stream = info["return_value"]
    read = stream.read

    def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
        left = _thread.deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the answer came too slowly")
        data: bytes = read(max_bytes, left if timeout is None else min(timeout, left))
        return data

    stream.read = read_in_time


def _cut(response: httpx2.Response) -> None:
    """Cut what is no answer: the client reads it to its end before anybody can look."""
    if not response.is_success and isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Head(response.stream, MAX_ERROR_BYTES)


class _Head(httpx2.SyncByteStream):
    """The first `max_bytes` of a body."""

    def __init__(self, stream: httpx2.SyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._left = max_bytes

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            yield chunk[: self._left]
            self._left -= len(chunk)
            if self._left <= 0:
                return

    def close(self) -> None:
        self._stream.close()
