"""State directories with a database of their own, and real processes that use them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from mirix.embedded.server import Server

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_SECONDS = 60
SOAK = os.environ.get("MIRIX_SOAK") == "1"

# The last two migrations of the skills app, which is one straight line.
LAST_TWO = sorted(path.stem for path in (ROOT / "skills" / "migrations").glob("[0-9]*.py"))[-2:]

# What a process does that uses the database through Django: tell which server and database it met.
ASK = """
import django
django.setup()
from django.db import connection
def ask(sql="SELECT pg_postmaster_start_time()::text || ' ' || current_database()"):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0] if cursor.description else None
"""
# The same without Django's start-up, where many processes are wanted.
LIGHT = """
import os, sys, psycopg
from pathlib import Path
from mirix.embedded.server import server
def ask(sql="SELECT pg_postmaster_start_time()::text || ' ' || current_database()"):
    folder = server(Path(os.environ["MIRIX_VAR_DIR"])).socket_dir()
    with psycopg.connect(host=str(folder), user="postgres", dbname="mirix", autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchone()[0] if cursor.description else None
"""
HOLD = "\nprint(ask(), flush=True)\nimport sys\nsys.stdin.read()\n"


class State:
    """A state directory; `var_dir` may not exist yet."""

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = var_dir
        self.server = Server(var_dir)
        self.started: list[subprocess.Popen[str]] = []

    def environment(self, **extra: str) -> dict[str, str]:
        """Return an environment that knows this state, and nothing else of mirix."""
        ours = ("MIRIX_", "DATABASE_URL", "COV_", "PYTEST_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return kept | {
            "MIRIX_VAR_DIR": str(self.var_dir),
            "DJANGO_SETTINGS_MODULE": "mirix.settings",
            **extra,
        }

    def start(self, *command: str, **options: Any) -> subprocess.Popen[str]:
        """Start a Python process in the checkout, its streams in our hands."""
        environment = self.environment(**options.pop("env", {}))
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            text=True,
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
        )
        self.started.append(process)
        return process

    def hold(self, code: str = LIGHT, **options: Any) -> subprocess.Popen[str]:
        """Start a process that uses the database until its input ends, and wait until it does."""
        process = self.start("-c", code + HOLD, **options)
        assert process.stdout is not None
        assert process.stdout.readline(), process.stderr and process.stderr.read()
        return process

    def run(self, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a Python process to its end."""
        process = self.start(*command, **options)
        out, err = process.communicate(timeout=PATIENCE_SECONDS * 3)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def ask(self, sql: str | None = None, code: str = LIGHT, **options: Any) -> str:
        """Return what a process of its own gets as the answer to `sql`."""
        done = self.run("-c", f"{code}\nprint(ask({'' if sql is None else repr(sql)}))", **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def manage(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run one manage.py command to its end."""
        return self.run("manage.py", *arguments, **options)

    @property
    def postmaster(self) -> psutil.Process:
        """The server's first process."""
        return psutil.Process(int((self.var_dir / "postgres" / "postmaster.pid").read_text().split()[0]))

    @property
    def ready(self) -> bool:
        """Whether the server says so, and its first process lives."""
        try:
            text = (self.var_dir / "postgres" / "postmaster.pid").read_text()
        except FileNotFoundError:
            return False
        return "\nready" in text and psutil.pid_exists(int(text.split()[0]))

    def processes(self) -> list[psutil.Process]:
        """Every living process that was started with this state, the server's own included."""
        found = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("MIRIX_VAR_DIR") == str(self.var_dir)
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:  # gone meanwhile, or another user's
                continue
        return found

    def kill_everything(self) -> None:
        """End all of it as a power cut would, the processes at least."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        wait_until(lambda: not self.processes())
        for started in self.started:
            started.wait()

    def close(self) -> None:
        """Leave nothing behind."""
        self.kill_everything()
        for process in self.started:
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.var_dir, ignore_errors=True)

    def copy_to(self, var_dir: Path) -> None:
        """Copy the directory with its owners, as `cp -a` does."""
        var_dir.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", str(self.var_dir), str(var_dir)], check=True)


@contextmanager
def opened(var_dir: Path) -> Iterator[State]:
    state = State(var_dir)
    try:
        yield state
    finally:
        state.close()


def end(process: subprocess.Popen[str]) -> int:
    """Let a process that holds the database leave; its exit code."""
    assert process.stdin is not None
    process.stdin.close()
    return process.wait(PATIENCE_SECONDS)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def wait_until(condition: Callable[[], Any]) -> None:
    """Wait for what another process is about to do."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
