"""`./run test`: every check and test of the project, on a machine that need have nothing but Python.

    ./run test         lint, types, import rules, migrations, schema; the tests; the tests in a browser
    ./run test unit    the checks, and the tests that need neither a database nor processes
    ./run test soak    the kill, load and volume tests with their full figures
    ./run test --model one run with a small real model, whose server is compiled first: 5 to 20 minutes

Each pytest process works on a fresh database cluster of its own, under `var/`, gone at the end; settings of
the caller's environment do not reach it. Logs and results lie in `var/test-results/`. The last line is
`N passed, N failed`, in which a check counts as one; skipped tests fail where CI=true.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402

from mirix.embedded.server import DATABASE, SUPERUSER, Server  # noqa: E402  (the line above makes it importable)
from tests.model import server  # noqa: E402

VAR = Path(os.environ.get("MIRIX_VAR_DIR", ROOT / "var")).resolve()
RESULTS = VAR / "test-results"
BIN = Path(sys.executable).parent
MANAGE = (sys.executable, "manage.py")
CHECKS: dict[str, tuple[str, ...]] = {
    "ruff check": (str(BIN / "ruff"), "check", "."),
    "ruff format": (str(BIN / "ruff"), "format", "--check", "."),
    "mypy": (str(BIN / "mypy"),),
    "lint-imports": (str(BIN / "lint-imports"),),
    "missing migrations": (*MANAGE, "makemigrations", "--check", "--dry-run"),
    "system checks": (*MANAGE, "check", "--database", "default", "--fail-level", "WARNING"),
    "OpenAPI schema": (*MANAGE, "spectacular", "--fail-on-warn", "--validate", "--file", os.devnull),
}
TESTS = ("tests", "--ignore=tests/browser", "--ignore=tests/model")
MODEL = "--model"
LANES: dict[str, dict[str, tuple[str, ...]]] = {
    "": {"tests": (*TESTS, "-n", "2"), "browser tests": ("tests/browser",)},
    "unit": {"tests": (*TESTS, "-n", "2", "-m", "not database and not processes and not soak")},
    "soak": {"soak tests": (*TESTS, "-m", "soak")},
    MODEL: {"model tests": ("tests/model",)},
}
PROGRAMS = {
    "redis-server": ("redis-server",),
    "curl": ("curl",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
}
NOTHING_COLLECTED = 5


@dataclass
class Tally:
    """What the last line says."""

    passed: int = 0
    failed: int = 0

    def count(self, step: str, *, passed: int, failed: int, seconds: float, note: str = "") -> None:
        """Add one step's outcome, and show it."""
        self.passed += passed
        self.failed += failed
        outcome = "ok" if not failed else "FAILED"
        print(f"{step:<20} {outcome:<7} {seconds:6.1f} s  {note}".rstrip(), flush=True)


def main() -> int:
    """Run the lane named on the command line; the exit code is 0 only when nothing failed."""
    lane = sys.argv[1] if len(sys.argv) == 2 else ""
    if len(sys.argv) > 2 or lane not in LANES:
        sys.exit("usage: ./run test [unit|soak|--model]")
    os.chdir(ROOT)
    install_programs(needed=lane in ("", "soak"))
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    tally = Tally()
    with ExitStack() as stack:
        environment = clean_environment(lane)
        if lane in ("", "soak"):
            environment["MIRIX_TEST_REDIS_URL"] = stack.enter_context(redis())
        if lane in ("", "unit"):
            run_checks(tally, environment)
        if lane == MODEL:
            environment["MIRIX_TEST_MODEL_URL"] = stack.enter_context(
                server.serving(VAR / "model", RESULTS / "model-server.log")
            )
        for step, arguments in LANES[lane].items():
            run_pytest(tally, step, arguments, environment)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


def clean_environment(lane: str) -> dict[str, str]:
    """Return the environment without settings of mirix, so that every machine runs the same tests."""
    ours = ("MIRIX_", "DATABASE_URL", "OPENAI_", "DJANGO_", "PYTEST_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours) or k == "MIRIX_SHARED_DATA"}
    return kept | ({"MIRIX_SOAK": "1"} if lane == "soak" else {})


def install_programs(*, needed: bool) -> None:
    """Install the browser and Redis from the distribution, or say what is missing."""
    missing = [package for package, names in PROGRAMS.items() if not any(map(shutil.which, names))]
    if not needed or not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(
            f"The tests need {' and '.join(missing)}: install them (Debian: apt install …) and run again."
        )
    print(f"Installing {' and '.join(missing)} …", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
        subprocess.run(["apt-get", "--quiet=2", *arguments], env=environment, check=True)


@contextmanager
def redis() -> Iterator[str]:
    """Run one Redis for the whole run; the URL of its socket."""
    with tempfile.TemporaryDirectory(prefix="mirix-redis-") as folder:
        socket = f"{folder}/redis.sock"  # not under var/, whose path may be too long for a socket
        with (RESULTS / "redis.log").open("wb") as log:
            process = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        try:
            while not os.path.exists(socket):
                if process.poll() is not None:
                    sys.exit(f"redis-server did not start: see {RESULTS / 'redis.log'}")
                time.sleep(0.02)
            yield f"unix://{socket}?db=1"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def cluster(step: str, *, durable: bool = False) -> Iterator[tuple[Path, list[str]]]:
    """Hold a fresh cluster: its state directory, and a list that gets what is wrong with how it was left.

    Where it is `durable`, commits wait for the disk as they do in production; tests need not wait.
    """
    var_dir = VAR / f"test-{slug(step)}-{os.getpid()}"
    faults: list[str] = []
    server = Server(var_dir)
    try:
        folder = server.socket_dir()
        if not durable:
            forget_safety(folder)
        yield var_dir, faults
    finally:
        server.leave()
        shutil.copy(server.log, RESULTS / f"{slug(step)}-postgres.log")
        if server.running():
            faults.append("processes that use the database were left behind")
            server.stop()
        shutil.rmtree(var_dir)


def forget_safety(folder: Path) -> None:
    """Let the server trust the machine not to lose power: what it holds is thrown away anyway."""
    with psycopg.connect(host=str(folder), user=SUPERUSER, dbname=DATABASE, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


def run_checks(tally: Tally, environment: dict[str, str]) -> None:
    """Run each check in turn; the output of a failed one is shown."""
    with cluster("checks") as (var_dir, _):
        for step, command in CHECKS.items():
            began = time.monotonic()
            log = RESULTS / f"{slug(step)}.log"
            with log.open("wb") as out:
                status = subprocess.run(
                    command,
                    stdout=out,
                    stderr=out,
                    env=environment | {"MIRIX_VAR_DIR": str(var_dir)},
                    check=False,
                ).returncode
            if status:
                print(log.read_text(errors="replace"))
            failed = status != 0
            tally.count(step, passed=not failed, failed=failed, seconds=time.monotonic() - began)


def run_pytest(tally: Tally, step: str, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    """Run one pytest process, and count what its report says."""
    began = time.monotonic()
    report = RESULTS / f"{slug(step)}.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *arguments]
    with (
        cluster(step) as (var_dir, faults),
        (RESULTS / f"{slug(step)}.log").open("wb") as log,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment | {"MIRIX_VAR_DIR": str(var_dir)},
        ) as process,
    ):
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 65536):
            log.write(chunk)
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        status = process.wait()
    passed, failed, skipped = read_report(report)
    if status == NOTHING_COLLECTED:
        faults.append("no test was found")
    elif status and not failed:
        faults.append(f"pytest ended with status {status}")
    if skipped and os.environ.get("CI") == "true":
        faults.append(f"{skipped} tests were skipped, which CI=true does not allow")
    note = "; ".join([f"{passed} passed, {failed} failed, {skipped} skipped", *faults])
    tally.count(step, passed=passed, failed=failed + len(faults), seconds=time.monotonic() - began, note=note)


def read_report(report: Path) -> tuple[int, int, int]:
    """Return how many tests passed, failed (errors too) and were skipped."""
    if not report.exists():
        return 0, 0, 0
    total = failed = skipped = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return total - failed - skipped, failed, skipped


def slug(step: str) -> str:
    return step.replace(" ", "-").lower()


if __name__ == "__main__":
    sys.exit(main())
