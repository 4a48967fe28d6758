"""The web server's worker: a request's head is gathered within bounds, and holds no thread until it is whole.

Gunicorn's own worker gives a thread to whoever has sent one byte, reads long lines in quadratic time, and
stands still for up to two seconds with each connection that it closes and the other side does not: all that
before any credential. Here a connection waits beside the threads while its head comes in, and while it is
closed. A body does hold a thread, so that it has to come at some speed.
"""

from __future__ import annotations

import socket
from time import monotonic
from typing import Any

from gunicorn import util
from gunicorn.http import message
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers import gthread

MAX_LINE_BYTES = 256 * 1024
"""Of a request line: a query of 20,000 characters of Chinese takes 180,000 bytes."""
MAX_HEADERS_BYTES = 128 * 1024
"""Of all headers together; gunicorn itself bounds their number, and each of them by 8 KB."""
HEAD_SECONDS = 10.0
"""From the first byte of a head to its last."""
LINGER_SECONDS = 2.0
"""For a client to read the answer, after which the connection is cut, whatever it still sends."""
BODY_SECONDS = 10.0
"""That a body may be waited for, and a second more for each `BODY_BYTES` that have come."""
BODY_BYTES = 50_000
REST_SECONDS = 0.2
"""For the rest of a body that nobody has read; where more is due, the connection is closed."""
CHUNK = 64 * 1024
END = b"\r\n\r\n"

message.MAX_REQUEST_LINE = MAX_LINE_BYTES  # gunicorn takes no limit above it
gthread.DEFAULT_WORKER_DATA_TIMEOUT = REST_SECONDS


class Unreader(SocketUnreader):
    """What of a connection was not read yet; `TimeoutError` ends the waiting for what comes too slowly."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.begin()

    def begin(self) -> None:
        """Begin to measure anew, with a new request."""
        self._came = 0
        self._waited = 0.0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return what has come; wait for it as long as its request still may be waited for."""
        outer = self.sock.gettimeout()
        left = BODY_SECONDS + self._came / BODY_BYTES - self._waited
        if left <= 0:
            raise TimeoutError("The body came too slowly.")
        self.sock.settimeout(left if outer is None else min(left, outer))
        began = monotonic()
        try:
            data: bytes = super().chunk(size_hint)
        finally:
            self._waited += monotonic() - began
            self.sock.settimeout(outer)
        self._came += len(data)
        return data


class Connection(gthread.TConn):
    """A connection, with what of a head has come so far."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.head = bytearray()
        self.is_late_at = 0.0
        self.is_cut_at: float | None = None
        """Set once all is said."""

    def init(self) -> None:
        """Make the parser, once."""
        if not self.initialized:
            super().init()
            self.parser.unreader = Unreader(self.sock)

    def gather(self) -> bool:
        """Take what has come; return whether a head is whole, or nothing more will come.

        Raises gunicorn's errors for one that is too large, `TimeoutError` for one that takes too long.
        """
        self.init()
        came = self.parser.unreader.take_buffered() or self.take()
        if came and not self.head:
            self.is_late_at = monotonic() + HEAD_SECONDS
        new_from = max(0, len(self.head) - len(END) + 1)
        self.head += came or b""
        if came == b"" or self.head.find(END, new_from) >= 0:
            self.parser.unreader.begin()
            self.parser.unreader.unread(bytes(self.head))
            self.head.clear()
            return True
        if len(self.head) > MAX_LINE_BYTES and self.head.find(b"\r\n", 0, MAX_LINE_BYTES + 2) < 0:
            raise LimitRequestLine(f"The request line is longer than {MAX_LINE_BYTES} bytes")
        if len(self.head) > MAX_LINE_BYTES + MAX_HEADERS_BYTES:
            raise LimitRequestHeaders(f"more than {MAX_HEADERS_BYTES} bytes")
        if self.head and monotonic() > self.is_late_at:
            raise TimeoutError
        return False

    def take(self) -> bytes | None:
        """Return what has come; empty at the end, None where there is nothing at the moment."""
        try:
            data: bytes = self.sock.recv(CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        return data

    def close(self, graceful: bool = False) -> None:
        """Close at once: `Worker` has waited for the other side where that is due."""
        util.close(self.sock)


class Worker(gthread.ThreadWorker):
    """See the module."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.cfg.set("limit_request_line", MAX_LINE_BYTES)
        gthread.TConn = Connection

    def handle(self, conn: Connection) -> Any:
        """Serve a request whose head is whole; `_DEFER` has the connection wait until more comes."""
        if conn.is_cut_at is not None:
            return self._wait_for_end(conn, conn.is_cut_at)
        try:
            if not conn.gather():
                return gthread._DEFER
        except (LimitRequestLine, LimitRequestHeaders) as error:
            self.handle_error(None, conn.sock, conn.client, error)
        except TimeoutError:
            self._say(conn, 408, "Request Timeout", f"The head took longer than {HEAD_SECONDS:.0f} seconds.")
        else:
            if super().handle(conn):
                return True
        return self._end(conn)

    def _say(self, conn: Connection, status: int, reason: str, words: str) -> None:
        try:
            util.write_error(conn.sock, status, reason, words)
        except OSError as error:
            self.log.debug("Nobody there to be told: %s", error)

    def _end(self, conn: Connection) -> Any:
        """End our side; closed at once with something unread, a connection would lose the answer."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        conn.is_cut_at = monotonic() + LINGER_SECONDS
        return self._wait_for_end(conn, conn.is_cut_at)

    def _wait_for_end(self, conn: Connection, is_cut_at: float) -> Any:
        if conn.take() == b"" or monotonic() > is_cut_at:
            return False
        return gthread._DEFER
