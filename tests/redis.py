"""A Redis for tests: the one that `./run test` has started, else one of this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a server on a socket of its own; its URL. Skips the test where there is none, but not in CI."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("redis-server is missing")
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="mirix-redis-") as folder:
        socket = f"{folder}/redis.sock"
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not os.path.exists(socket):
                assert process.poll() is None, "redis-server did not start"
                time.sleep(0.02)
            yield f"unix://{socket}?db=1"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def redis() -> Iterator[str]:
    """Return the URL of the Redis that `./run test` has started, else of one for this block."""
    if url := os.environ.get("MIRIX_TEST_REDIS_URL"):
        yield url
    else:
        with redis_server() as url:
            yield url
