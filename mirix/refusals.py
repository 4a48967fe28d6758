"""What gunicorn refuses before the application sees it, in JSON as every error of the API."""

from __future__ import annotations

import json
import socket

from gunicorn import util
from gunicorn.config import Config
from gunicorn.glogging import Logger

from mirix.environment import choice
from mirix.logs import FORMATTERS


class Log(Logger):
    """Gunicorn's log; what it says about a request that it refuses holds no credential."""

    def setup(self, cfg: Config) -> None:
        """Take our lines."""
        super().setup(cfg)
        formatter = FORMATTERS[choice("MIRIX_LOG_FORMAT", "text", FORMATTERS)]
        for handler in self.error_log.handlers:
            handler.setFormatter(formatter(self.error_fmt, self.datefmt))


def answer_in_json() -> None:
    """Let this process refuse in JSON: headers too large, a broken request line; gunicorn has HTML alone."""
    util.write_error = _write_error


def _write_error(client: socket.socket, status: int, reason: str, message: str) -> None:
    body = json.dumps({"detail": f"{reason}: {message}" if message else f"{reason}."}, separators=(",", ":"))
    head = [
        f"HTTP/1.1 {status} {reason}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",  # ASCII, as json.dumps writes
    ]
    util.write_nonblock(client, "\r\n".join([*head, "", body]).encode("ascii"))
