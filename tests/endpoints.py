"""An OpenAI-compatible embedding endpoint on loopback that does what a test tells it, well or badly."""

from __future__ import annotations

import base64
import json
import re
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 32


def word_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector in which texts that share words are near each other; the same in every process."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.casefold()):
        digest = blake2b(word.encode(), digest_size=8).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1 if digest[4] % 2 else -1
    return vector if any(vector) else [1.0] + [0.0] * (dimensions - 1)


@dataclass
class Script:
    """What the endpoint does; tests change it between requests."""

    embed: Callable[[str], list[float]] = word_vector
    status: int = 200
    body: bytes | None = None
    """Sent as it stands, instead of vectors."""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    slow: float = 0.0
    """Seconds before the answer; ends early when the endpoint is told to stop."""
    drip: float = 0.0
    """Seconds between the bytes of the answer."""
    alter: Callable[[list[dict[str, Any]]], Any] = lambda items: items
    """What becomes of the list of embeddings."""
    base64: bool = True
    """Whether it encodes where it is asked to, or sends numbers all the same."""
    refuse: Callable[[str], bool] = lambda text: False
    """Texts for which it answers 400 to the whole request."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent, in order."""
        return [text for request in self.requests for text in request["input"]]


@dataclass
class Endpoint:
    """Where it listens, and its script."""

    url: str
    script: Script
    address: tuple[str, int]


@contextmanager
def scripted_endpoint() -> Iterator[Endpoint]:
    """Serve a `Script` until the block ends."""
    script, stopping = Script(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append(request)
            script.keys.append(self.headers.get("Authorization", ""))
            stopping.wait(script.slow)
            status = 400 if any(map(script.refuse, request["input"])) else script.status
            body = script.body if script.body is not None else self._answer(request)
            self.send_response(status)
            self.send_header("Content-Type", script.content_type)
            self.send_header("Content-Length", str(len(body)))
            for name, value in script.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not script.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if stopping.wait(script.drip):
                    return

        def _answer(self, request: dict[str, Any]) -> bytes:
            encoded = script.base64 and request.get("encoding_format") == "base64"
            items = [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": self._vector(script.embed(text), encoded),
                }
                for index, text in enumerate(request["input"])
            ]
            return json.dumps(
                {"object": "list", "data": script.alter(items), "model": request["model"]}
            ).encode()

        def _vector(self, vector: list[float], encoded: bool) -> Any:
            packed = struct.pack(f"<{len(vector)}f", *vector)
            return base64.b64encode(packed).decode() if encoded else vector

        def handle(self) -> None:
            with suppress(ConnectionError):  # the caller has gone, as a test of slowness wants
                super().handle()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
    thread.start()
    try:
        host, port = server.server_address[:2]
        yield Endpoint(f"http://127.0.0.1:{port}/v1", script, (str(host), int(port)))
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()
