"""Lines of the log: without credentials, and one for what a caller did wrong. Pure."""

from __future__ import annotations

import logging
import re
from copy import copy

SECRET = re.compile(r"mx_[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
"""What looks like one of our keys or tokens."""
HIDDEN = "*" * 20


class LineFormatter(logging.Formatter):
    """Hides keys and tokens wherever they stand, since a caller may put them into a path or a header.

    What was answered with 4xx is the caller's fault: a warning at most, and no traceback of ours explains it.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        if 400 <= getattr(record, "status_code", 500) < 500:
            record = copy(record)  # others may want all of it
            record.exc_info = record.exc_text = None
            if record.levelno > logging.WARNING:
                record.levelno, record.levelname = logging.WARNING, "WARNING"
        return SECRET.sub(HIDDEN, super().format(record))
