"""The services of the compose file, started by hand from the same settings: tests have no Docker."""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import yaml

from mirix.embedded.account import server_account, switch
from mirix.embedded.server import binaries

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = ROOT / "deploy" / "mirix.env.example"
PATIENCE_SECONDS = 90


def settings_of(example: Path) -> dict[str, str]:
    """Read the file of settings, as Docker and systemd do."""
    lines = [line for line in example.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Installation:
    """PostgreSQL, Redis, web and worker; hosts of the settings are this one, secrets are filled in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.password = secrets.token_urlsafe(12)
        self.metrics_token = secrets.token_urlsafe(48)
        self.ports = {name: free_port() for name in ("db", "redis", "web")}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.settings = settings_of(EXAMPLE)
        self.settings["MIRIX_SECRET_KEY"] = secrets.token_urlsafe(48)
        self.settings["MIRIX_METRICS_TOKEN"] = self.metrics_token
        self.settings["DATABASE_URL"] = (
            self.settings["DATABASE_URL"]
            .replace("FILL-IN", self.password)
            .replace("db:5432", f"127.0.0.1:{self.ports['db']}")
        )
        self.settings["MIRIX_REDIS_URL"] = self.settings["MIRIX_REDIS_URL"].replace(
            "redis:6379", f"127.0.0.1:{self.ports['redis']}"
        )
        self.host = self.settings["MIRIX_ALLOWED_HOSTS"]

    def environment(self, service: str = "web") -> dict[str, str]:
        """Return what a container of the service would know, beside the programs of PostgreSQL."""
        return {
            "PATH": f"{Path(sys.executable).parent}:{binaries()}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "MIRIX_VAR_DIR": str(self.folder / "var"),
            "PYTHONUNBUFFERED": "1",
            **self.settings,
            **SERVICES[service].get("environment", {}),
        }

    def start(self, service: str, *extra: str, name: str = "") -> subprocess.Popen[bytes]:
        """Start web or worker by the command of the compose file."""
        command = [*SERVICES[service]["command"], *extra]
        with (self.folder / f"{name or service}.log").open("ab") as log:
            process = subprocess.Popen(
                [shutil.which(command[0], path=self.environment()["PATH"]) or command[0], *command[1:]],
                cwd=ROOT,
                env=self.environment(service),
                stdin=subprocess.DEVNULL,
                stderr=log,
                stdout=subprocess.DEVNULL,
            )
        self.running[name or service] = process
        return process

    def start_database(self) -> None:
        data = self.folder / "data"
        account = server_account(self.folder / "var", [binaries() / "postgres", data])
        data.mkdir()
        shutil.chown(data, account.uid, account.gid)
        (self.folder / "password").write_text(self.password)
        (self.folder / "password").chmod(0o644)
        asked = SERVICES["db"]["environment"]
        subprocess.run(
            [
                *(binaries() / "initdb", "-D", data, "-U", asked["POSTGRES_USER"], "--auth=scram-sha-256"),
                *(f"--pwfile={self.folder / 'password'}", "--encoding=UTF8", "--locale=C"),
            ],
            check=True,
            capture_output=True,
            cwd="/",
            **switch(account),
        )
        _, *options = SERVICES["db"]["command"]
        with (self.folder / "db.log").open("ab") as log:
            self.running["db"] = subprocess.Popen(
                [binaries() / "postgres", "-D", data, "-p", str(self.ports["db"]), "-k", data, *options],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                **switch(account),
            )
        wait_until(lambda: self.sql("SELECT 1", database="postgres") == 1)
        self.sql(f"CREATE DATABASE {asked['POSTGRES_DB']}", database="postgres")

    def start_redis(self) -> None:
        program, *options = SERVICES["redis"]["command"]
        self.running["redis"] = subprocess.Popen(
            [program, *options, "--port", str(self.ports["redis"]), "--bind", "127.0.0.1"],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )

    def start_web(self, name: str = "web") -> None:
        self.start("web", "--bind", f"127.0.0.1:{self.ports['web']}", name=name)
        wait_until(lambda: self.get("/health")[0] == 200)

    def manage(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command, as `docker compose exec web python manage.py` does."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment() | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def sql(self, statement: str, database: str = "mirix") -> Any:
        """Return the first value of what the database answers; None while it does not."""
        try:
            with psycopg.connect(
                host="127.0.0.1",
                port=self.ports["db"],
                user="mirix",
                password=self.password,
                dbname=database,
                autocommit=True,
            ) as connection:
                cursor = connection.execute(statement)
                row = cursor.fetchone() if cursor.description else None
                return row[0] if row else None
        except psycopg.OperationalError:
            return None

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        return self.ask("GET", path, None, headers)

    def ask(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask as the proxy would; status 0 where nobody answers."""
        proxied = {"Host": self.host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["web"], timeout=30)
        try:
            connection.request(method, path, body, proxied | headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}, b""
        finally:
            connection.close()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self, name: str, patience: float = PATIENCE_SECONDS) -> int:
        process = self.running.pop(name)
        process.terminate()
        return process.wait(patience)

    def close(self) -> None:
        for name in sorted(self.running, key=["db", "redis"].__contains__):
            process = self.running[name]
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def installed(folder: Path) -> Iterator[Installation]:
    """Run all services until the block ends."""
    installation = Installation(folder)
    try:
        installation.start_database()
        installation.start_redis()
        done = installation.manage(*SERVICES["migrate"]["command"][2:], "-v0")
        assert done.returncode == 0, done.stderr
        installation.start_web()
        installation.start("worker")
        wait_until(lambda: installation.sql("SELECT count(*) FROM procrastinate_workers") == 1)
        yield installation
    finally:
        installation.close()


def wait_until(condition: Any, patience: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
