"""An HTTP server on loopback that keeps what it is sent, to stand for the receiver of a webhook."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str = ""
    status: int = 204
    location: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((self.path, dict(self.headers), body))
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.end_headers()

        def do_GET(self) -> None:
            receiver.requests.append((self.path, dict(self.headers), b""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receiver
        server.shutdown()


@contextmanager
def dripping(beginning: bytes = b"") -> Iterator[str]:
    """A server that accepts and then sends its answer byte by byte, without an end."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    connection.sendall(beginning)
                    while not stop.wait(0.02):
                        connection.sendall(b"H")
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        stop.set()
        thread.join()
