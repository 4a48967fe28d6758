"""`python -m mirix.probe`: whether the web process of this container can serve; ends with 1 where it cannot.

It asks as the proxy would, under a host that is served, and goes through no proxy itself.
"""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection, HTTPException

PATIENCE_SECONDS = 5


def served_host(allowed: str) -> str:
    """Return a host that `MIRIX_ALLOWED_HOSTS` lets in."""
    first = allowed.partition(",")[0].strip().removeprefix(".")
    return first if first not in ("", "*") else "localhost"


def main() -> int:
    """Ask, say what was answered, and return the exit status."""
    port = int(os.environ.get("MIRIX_PORT") or 8531)
    host = served_host(os.environ.get("MIRIX_ALLOWED_HOSTS", ""))
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", "/ready", headers={"Host": host})
        answer = connection.getresponse()
        print(answer.status, answer.read(1_000).decode(errors="replace"))
    except (OSError, HTTPException) as error:
        print(error)
        return 1
    finally:
        connection.close()
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
