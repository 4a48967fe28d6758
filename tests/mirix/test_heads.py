"""What comes in before a request is a request costs little and holds up nobody, whoever sends it."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic

import psutil
import pytest
from gunicorn.config import Config
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine
from gunicorn.http.unreader import SocketUnreader

from mirix.heads import MAX_LINE_BYTES, Connection, Unreader
from tests.mirix.served import Served

MEGABYTES_50 = 50_000_000
REST = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
MANY = 24
"""Three times the threads."""


@contextmanager
def pair() -> Iterator[tuple[socket.socket, Connection]]:
    """A client's socket, and the connection at its other end."""
    client, server = socket.socketpair()
    with client, server:
        yield client, Connection(Config(), server, ("127.0.0.1", 1), ("127.0.0.1", 2))


def sent(served: Served, *parts: bytes) -> tuple[int, str | None, dict[str, str]]:
    """The answer to raw bytes, of which the server need not take all."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                client.sendall(part)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        return answer.status, answer.getheader("Content-Type"), json.loads(answer.read())


def web_worker(served: Served) -> psutil.Process:
    web = served.child("mirix.wsgi")
    assert web
    (worker,) = web.children()
    return worker


def test_a_head_may_come_in_pieces():
    with pair() as (client, connection):
        for byte in b"GET /health HTTP/1.1\r\nA: b\r\n\r":
            client.send(bytes([byte]))
            assert not connection.gather()
        assert not connection.gather()
        client.send(b"\nbody")
        assert connection.gather()
        request = next(connection.parser)
        assert (request.method, request.path, request.headers) == ("GET", "/health", [("A", "b")])
        assert connection.parser.unreader.take_buffered() == b"body"


def test_of_two_requests_at_once_the_second_waits_for_its_turn():
    with pair() as (client, connection):
        client.send(b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3")
        assert connection.gather()
        assert next(connection.parser).path == "/1"
        assert connection.gather()
        assert next(connection.parser).path == "/2"
        assert not connection.gather()
        client.send(b" HTTP/1.1\r\n\r\n")
        assert connection.gather()
        assert next(connection.parser).path == "/3"


def test_one_who_has_gone_is_not_waited_for():
    with pair() as (client, connection):
        client.send(b"GET /")
        client.shutdown(socket.SHUT_WR)
        assert not connection.gather()
        assert connection.gather()


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (b"GET /" + b"a" * (MAX_LINE_BYTES + 70_000), LimitRequestLine),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 500_000, LimitRequestHeaders),
        (b"GET / HTTP/1.1\r\n" + b"A: a\r\n" * 100_000, LimitRequestHeaders),
    ],
    ids=["line", "header", "headers"],
)
def test_a_head_without_end_is_refused(head: bytes, error: type[Exception]):
    with pair() as (client, connection):
        sender = threading.Thread(target=_send, args=(client, head))
        sender.start()
        with pytest.raises(error):
            gather_all(connection)
        connection.sock.close()
        sender.join()


def gather_all(connection: Connection) -> None:
    while not connection.gather():
        pass


def _send(client: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        client.sendall(data)


def test_a_head_that_trickles_in_is_refused_in_the_end(monkeypatch):
    clock = iter(range(1_000))
    monkeypatch.setattr("mirix.heads.monotonic", lambda: float(next(clock)))
    with pair() as (client, connection):
        for _ in range(10):  # the first is asked for the time twice
            client.send(b"a")
            assert not connection.gather()
        with pytest.raises(TimeoutError):
            connection.gather()


def test_a_body_that_stops_coming_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("mirix.heads.BODY_SECONDS", 0.05)
    with pair() as (client, connection):
        client.send(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf")
        assert connection.gather()
        connection.sock.settimeout(None)
        body = next(connection.parser).body
        with pytest.raises(TimeoutError):
            body.read()
        assert connection.sock.gettimeout() is None
        assert not connection.parser.finish_body(), "where its rest ends is unknown"


def test_a_body_may_take_longer_the_more_of_it_has_come(monkeypatch):
    waited = []

    def recv(self, size_hint=None):
        waited.append(round(self.sock.gettimeout(), 6))
        return b"a" * 25_000

    clock = itertools.count()
    monkeypatch.setattr("mirix.heads.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(SocketUnreader, "chunk", recv)
    with socket.socket() as sock:
        unreader = Unreader(sock)
        for _ in range(20):  # a second each, in which half a second's worth comes
            unreader.chunk()
        assert waited == [10 - number / 2 for number in range(20)]
        with pytest.raises(TimeoutError):
            unreader.chunk()
        unreader.begin()
        unreader.chunk()
        assert waited[-1] == 10


@pytest.mark.processes
def test_a_line_may_be_long(served: Served):
    assert served.get("/health?query=" + "a" * 250_000)[0] == 200
    status, kind, answer = sent(served, b"GET /health?query=" + b"a" * MAX_LINE_BYTES + REST)
    assert (status, kind) == (414, "application/json")
    assert answer["detail"].startswith("URI Too Long: ")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("begin", "endless", "status"),
    [
        (b"GET /memory/search?query=", b"a" * MEGABYTES_50, 414),
        (b"GET /health HTTP/1.1\r\nX-API-Key: ", b"a" * MEGABYTES_50, 431),
        (b"GET /health HTTP/1.1\r\n", b"A: a\r\n" * (MEGABYTES_50 // 6), 431),
    ],
    ids=["line", "header", "headers"],
)
def test_fifty_megabytes_before_any_credential_cost_next_to_nothing(
    served: Served, begin: bytes, endless: bytes, status: int
):
    worker = web_worker(served)
    memory, cpu = worker.memory_info().rss, sum(worker.cpu_times()[:2])
    told, kind, answer = sent(served, begin, endless, REST)
    assert (told, kind, list(answer)) == (status, "application/json", ["detail"])
    assert sum(worker.cpu_times()[:2]) - cpu < 1.0
    assert worker.memory_info().rss - memory < 20_000_000


@pytest.mark.processes
@pytest.mark.parametrize(
    "held",
    [
        b"",
        b"GET /health HTTP/1.1\r\nX: ",
        b"nonsense\r\n\r\n",
        b"GET /health HTTP/1.0\r\n\r\n",
        b"POST /memory/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n",
    ],
    ids=["nothing", "half a head", "refused and not closed", "answered and not closed", "no body or key"],
)
def test_many_that_hold_their_connections_hold_up_nobody(served: Served, held: bytes):
    with ExitStack() as stack:
        for _ in range(MANY):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=30))
            client.sendall(held)
        began = monotonic()
        assert served.get("/health")[0] == 200
        assert monotonic() - began < 1.5


@pytest.mark.processes
def test_a_body_that_does_not_come_is_told(served: Served):
    asking = b"POST /auth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    for length in (b"Content-Length: 10\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"):
        began = monotonic()
        assert sent(served, asking + length) == (
            408,
            "application/json",
            {"detail": "The request body came too slowly."},
        )
        assert 8 < monotonic() - began < 20


@pytest.mark.processes
def test_a_connection_serves_many_requests(served: Served):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    for _ in range(3):
        connection.request("GET", "/health")
        assert connection.getresponse().read().startswith(b'{"status":"healthy"')
    connection.close()
