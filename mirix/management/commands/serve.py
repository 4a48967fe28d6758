"""`serve`: the web application and a worker in one, for a laptop or a small machine.

This process holds the database and watches two children, each in a session of its own, so that Ctrl-C in a
terminal reaches this process alone, which then asks each child once to finish. Should this process be
killed, the kernel asks them instead.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import OperationalError, connections

from mirix.commands import MigrationsRequired, whole
from mirix.embedded.server import server

GLANCE_SECONDS = 0.2
DATABASE_GLANCE_SECONDS = 5.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
STEADY_SECONDS = 60.0
FINISH_SECONDS = 25.0  # for running jobs and requests, before they are told again
PR_SET_PDEATHSIG = 1


class Child:
    """A program that is started again when it ends, after a pause that grows while it keeps ending soon."""

    def __init__(self, name: str, command: list[str], keep: tuple[int, ...] = ()) -> None:
        self.name, self.command, self.keep = name, command, keep
        self.pause = FIRST_PAUSE_SECONDS
        self.start()

    def start(self) -> None:
        """Start the program."""
        self.due: float | None = None
        self.started = time.monotonic()
        self.process = subprocess.Popen(  # noqa: S603  (our own programs)
            self.command,
            cwd=settings.BASE_DIR,
            start_new_session=True,
            pass_fds=self.keep,
            preexec_fn=_end_with_parent,
        )

    def look_after(self) -> str:
        """Start it again when it ended and its pause is over; return what is worth telling, if anything."""
        now = time.monotonic()
        if self.due is not None:
            if now >= self.due:
                self.start()
            return ""
        if (status := self.process.poll()) is None:
            return ""
        if now - self.started > STEADY_SECONDS:
            self.pause = FIRST_PAUSE_SECONDS
        self.due = now + self.pause
        told = f"The {self.name} ended with status {status}; it starts again in {self.pause:.0f} s."
        self.pause = min(self.pause * 2, LONGEST_PAUSE_SECONDS)
        return told


class Command(MigrationsRequired):
    """See the module."""

    help = "Serve the API and the admin, and run the jobs, until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add where to listen."""
        parser.add_argument(
            "--port",
            type=whole(low=0, high=65_535),
            default=settings.MIRIX_PORT,
            metavar="N",
            help="0 takes a free one.",
        )
        parser.add_argument("--host", default="127.0.0.1")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run both until a signal ends this process, then let them finish."""
        # Whoever was started in the background of a script has inherited deafness to it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with listen(options["host"], options["port"]) as listener:
            connections.close_all()
            port = listener.getsockname()[1]
            os.environ["MIRIX_PORT"] = str(port)  # by which the children know where people reach us
            children: list[Child] = []
            try:
                children.append(Child("web server", web_server(listener.fileno()), keep=(listener.fileno(),)))
                children.append(Child("worker", [sys.executable, "manage.py", "worker"]))
                self._watch(children, options["host"], port)
            except (KeyboardInterrupt, SystemExit):
                self.stdout.write("Stopping …")
            finally:
                _finish(children)
        self.stdout.write("Stopped.")

    def _watch(self, children: list[Child], host: str, port: int) -> None:
        told_ready = False
        database_due = time.monotonic() + DATABASE_GLANCE_SECONDS
        while True:
            time.sleep(GLANCE_SECONDS)
            if not told_ready and _answers(host, port):
                told_ready = True
                self.stdout.write(f"mirix serves http://{host}:{port}/ (admin: /admin/). Ctrl-C stops it.")
                self.stdout.flush()
            for child in children:
                if news := child.look_after():
                    self.stderr.write(news)
            if not settings.DATABASE_URL and time.monotonic() > database_due:
                database_due = time.monotonic() + DATABASE_GLANCE_SECONDS
                try:
                    server(settings.VAR_DIR).socket_dir(ask_again=True)
                except OperationalError as error:
                    self.stderr.write(str(error))


def listen(host: str, port: int) -> socket.socket:
    """Open the socket here: who listens is clear at once, and it outlives a web server that ended."""
    try:
        return socket.create_server((host, port), backlog=2048)
    except (OSError, UnicodeError) as error:  # the latter for what can be no name of a host
        reason = str(getattr(error, "strerror", "no name of a host")).partition(" (")[0]
        raise CommandError(
            f"Cannot listen on {host} port {port}: {reason}. Choose another by --port or MIRIX_PORT."
        ) from error


def web_server(descriptor: int) -> list[str]:
    """Return the command of the web server, which takes its requests from an open socket."""
    config = settings.BASE_DIR / "deploy" / "gunicorn.conf.py"
    return [
        *(sys.executable, "-m", "gunicorn", "mirix.wsgi", "--config", str(config)),
        *("--bind", f"fd://{descriptor}", "--workers", "1"),
    ]


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/health")
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def _finish(children: list[Child]) -> None:
    """Ask each child once to finish, insist when it takes too long, and leave none behind."""
    running = [child.process for child in children if child.process.poll() is None]
    try:
        for patience in (FINISH_SECONDS, FINISH_SECONDS / 5):
            for process in running:
                process.terminate()
            deadline = time.monotonic() + patience
            while any(process.poll() is None for process in running) and time.monotonic() < deadline:
                time.sleep(GLANCE_SECONDS / 10)
            running = [process for process in running if process.poll() is None]
    finally:  # also when a second Ctrl-C cuts the wait short
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _end_with_parent() -> None:
    """In the child, before its program: get SIGTERM when the parent dies (Linux only)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
