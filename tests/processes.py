"""Real processes on the test's database, for what only a process can show: to be killed, or put to sleep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from django.db import connection

ROOT = Path(__file__).resolve().parent.parent
SOAK = os.environ.get("MIRIX_SOAK") == "1"
PATIENCE_SECONDS = 60
T = TypeVar("T")
TELL_PEAK = """
import re
from pathlib import Path
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""Ends a script: prints the most memory that it took, in kB."""
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import django
django.setup()
"""
"""Begins a script: it hears SIGINT as from a terminal, also where the tests run in the background of one."""


class Process:
    """A Python process that runs `script` with Django set up; for transactional tests, as a context."""

    def __init__(self, script: str, **environment: str) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
        self.popen = subprocess.Popen(
            [sys.executable, "-c", START + script],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
            env=os.environ
            | {
                "DJANGO_SETTINGS_MODULE": "tests.process_settings",
                "MIRIX_TEST_DATABASE": str(connection.settings_dict["NAME"]),
                "PYTHONUNBUFFERED": "1",
            }
            | environment,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            self.kill()
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.close()
        self.popen.stdout.close()
        self.errors.close()

    def line(self) -> str:
        """Return the next line of its output, waiting for it; empty when it has ended."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def go(self) -> None:
        """Give it the line that it waits for."""
        assert self.popen.stdin is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill(self) -> None:
        """As `kill -9`, and wait for the end."""
        self.popen.kill()
        self.popen.wait(PATIENCE_SECONDS)

    def end(self, patience_seconds: float = PATIENCE_SECONDS) -> tuple[int, str, str]:
        """Wait for the end; return status, output and errors."""
        out, _ = self.popen.communicate(timeout=patience_seconds)
        self.errors.seek(0)
        return self.popen.returncode, out, self.errors.read()


def eventually(look: Callable[[], T]) -> T:
    """Return what `look` returns as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return seen
