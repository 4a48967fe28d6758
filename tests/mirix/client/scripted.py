"""A server on loopback that answers as it was told, and keeps what it was asked."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    dead: bool = False
    """End the connection without a word."""
    last: bool = False
    """End the connection after the answer, without saying so."""


def said(body: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(body).encode(), headers)


@dataclass
class Asked:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: tuple[str, int]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Scripted:
    """Gives its answers in turn, the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [Answer()]
        self.asked: list[Asked] = []
        self.url = ""

    def answer(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def next(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted() -> Iterator[Scripted]:
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = script.next(
                Asked(self.command, self.path, dict(self.headers), body, self.client_address)
            )
            if answer.before:
                answer.before()
            if answer.dead:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
            self.close_connection |= answer.last

        do_GET = do_POST = do_DELETE = handle_one

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that has gone is no news."""

    with Server(("127.0.0.1", 0), Handler) as server:
        script.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            server.shutdown()
            thread.join()
