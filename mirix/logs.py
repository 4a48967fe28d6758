"""Lines of the log: for people or, as JSON, for machines; without credentials and what anybody wrote. Pure.

A line says which request or run it belongs to, by `about`. A path is the route that it took, since ids of
sessions and users are the caller's words; an exception is what `mirix.faults` tells of it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from mirix.faults import trace_of

SECRET = re.compile(r"mx_[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
"""What looks like one of our keys or tokens."""
HIDDEN = "*" * 20
SEGMENT = re.compile(r"[a-z_.-]{0,24}")
"""The beginning of a path as programs make them."""
JOB = re.compile(r"(\w[\w.]*\[\d+\])\(.*\)", re.DOTALL)
"""How Procrastinate names a job, its arguments included: ids, and who acts."""
LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"

_about: ContextVar[Mapping[str, str]] = ContextVar("mirix_about", default={})  # noqa: B039  (never written)


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Have every line that is written in the block say what it belongs to, as `run_id="run-…"`."""
    token = _about.set({**_about.get(), **ids})
    try:
        yield
    finally:
        _about.reset(token)


def route_of(request: Any) -> str:
    """Return the path of a request; of a route with parameters the route, which names them.

    Of a path that leads nowhere only the beginning: the rest may be anybody's id, with a `/` too many.
    """
    match = getattr(request, "resolver_match", None)
    if match is None:
        return _beginning(str(getattr(request, "path", "/")))
    return f"/{match.route}" if match.kwargs else str(request.path)


def _beginning(path: str) -> str:
    first, _, rest = path.removeprefix("/").partition("/")
    if not SEGMENT.fullmatch(first):
        return "/…"
    return f"/{first}/…" if rest else path


class LineFormatter(logging.Formatter):
    """A line for people.

    Keys and tokens are hidden wherever they stand, since a caller may put them into a path or a header. What
    was answered with 4xx is the caller's fault: a warning at most, and no traceback of ours explains it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        record = copy(record)  # others may want all of it
        record.exc_text = None
        if 400 <= getattr(record, "status_code", 500) < 500:
            record.exc_info = None
            if record.levelno > logging.WARNING:
                record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.msg, record.args = _message(record), ()
        return SECRET.sub(HIDDEN, self.written(record))

    def written(self, record: logging.LogRecord) -> str:
        """Return what `format` then hides secrets in."""
        return super().format(record)

    def formatException(  # noqa: N802  (its name in the library)
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """Return the traceback."""
        return trace_of(ei[1]) if ei[1] is not None else ""


class JsonFormatter(LineFormatter):
    """A line for machines: an object with `time`, `level`, `logger`, `message`, the ids, and `error`."""

    def written(self, record: logging.LogRecord) -> str:
        """Return the object."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_about.get(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= {
                "error": type(record.exc_info[1]).__name__,
                "traceback": self.formatException(record.exc_info),
            }
        return json.dumps(line, ensure_ascii=False, default=str)


FORMATTERS: dict[str, type[LineFormatter]] = {"text": LineFormatter, "json": JsonFormatter}


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    request = getattr(record, "request", None)
    if request is not None and (path := str(getattr(request, "path", ""))):
        message = message.replace(path, route_of(request))
    return JOB.sub(r"\1", message) if record.name.startswith("procrastinate") else message
