"""The check list of docs/operations.md, gone through with the services of the compose file."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.installation import ROOT, SERVICES, Installation, installed, wait_until

pytestmark = pytest.mark.processes
WORDS = "canary words of a user"


@pytest.fixture(scope="module")
def live() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="mirix-live-") as folder:
        Path(folder).chmod(0o755)
        with installed(Path(folder)) as installation:
            yield installation


@pytest.fixture(scope="module")
def key(live: Installation) -> str:
    assert live.manage("create_organization", "acme").returncode == 0
    assert live.manage("create_client", "--organization", "acme", "agent").returncode == 0
    done = live.manage("create_api_key", "--organization", "acme", "--client", "agent")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def add(live: Installation, key: str, session: str, path: str = "/memory/add") -> int:
    body = {"session_id": session, "user_id": "alice", "messages": [{"role": "user", "content": WORDS}]}
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    return live.ask("POST", path, json.dumps(body).encode(), headers)[0]


def turns(live: Installation) -> int:
    return live.sql("SELECT count(*) FROM conversations_conversationmessage")


def test_the_list_has_no_point_without_a_test():
    page = (ROOT / "docs" / "operations.md").read_text()
    listed = page.partition("## Before you go live")[2].partition("##")[0]
    points = re.findall(r"^(\d+)\. ", listed, re.MULTILINE)
    assert len(points) == 8
    assert set(points) == set(re.findall(r"test_(\d)_", " ".join(globals())))


def test_1_the_checks_before_a_deployment_find_nothing(live: Installation):
    done = live.manage("check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr


def test_2_it_is_ready_and_says_of_what(live: Installation):
    wait_until(lambda: json.loads(live.get("/ready")[2])["status"] == "ready")
    status, _, body = live.get("/ready")
    found = json.loads(body)
    assert status == 200
    assert found["checks"]["worker"]["detail"] == "1 alive"
    assert found["checks"]["cache"]["detail"] == "Redis answers"


def test_2_the_container_is_told_to_be_well(live: Installation):
    kind, program, *arguments = SERVICES["web"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")

    def probe(**environment: str) -> subprocess.CompletedProcess[str]:
        # A proxy for what the container asks of others is none for itself.
        known = live.environment() | {"http_proxy": "http://192.0.2.1:9"} | environment
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=known, capture_output=True, text=True, check=False
        )

    done = probe(MIRIX_PORT=str(live.ports["web"]))
    assert (done.returncode, done.stdout[:4]) == (0, "200 "), done.stderr
    assert probe(MIRIX_PORT="1").returncode == 1
    assert probe(MIRIX_PORT=str(live.ports["redis"])).returncode == 1


def test_3_its_numbers_are_for_who_has_the_token(live: Installation):
    assert live.get("/metrics")[0] == 401

    def told() -> bytes:
        status, _, body = live.get("/metrics", Authorization=f"Bearer {live.metrics_token}")
        assert status == 200
        return body

    assert b"\nmirix_database_up 1.0\n" in told()
    wait_until(lambda: b"\nmirix_workers 1.0\n" in told())


def test_4_what_is_not_there_is_told_in_json(live: Installation):
    status, _, body = live.get("/nowhere")
    assert (status, json.loads(body)) == (404, {"detail": "Not found."})
    status, headers, body = live.get("/health", Host="elsewhere.example")
    assert (status, headers["Content-Type"]) == (400, "application/json")


def test_5_browsers_are_told_to_keep_to_it(live: Installation):
    status, headers, _ = live.get("/admin/login/")
    assert status == 200
    assert "; Secure" in headers["Set-Cookie"]
    assert headers["Strict-Transport-Security"] == "max-age=2592000"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")


def test_6_what_was_added_outlives_every_process(live: Installation, key: str):
    before = turns(live)
    assert add(live, key, "first") == 200
    wait_until(lambda: turns(live) == before + 1)

    assert live.stop("worker") == 0
    assert add(live, key, "second") == 200
    found = json.loads(live.get("/ready")[2])
    wait_until(lambda: json.loads(live.get("/ready")[2])["status"] == "degraded")
    assert found["checks"]["database"]["state"] == "ok"
    live.start("worker")
    wait_until(lambda: turns(live) == before + 2)

    assert live.stop("web") == 0
    live.start_web()
    assert live.stop("redis") == 0
    assert add(live, key, "third", "/memory/add_sync") == 200
    live.start_redis()
    assert turns(live) == before + 3


def test_6_a_rolling_restart_of_the_web_loses_no_request(live: Installation, key: str):
    statuses: list[int] = []
    over = threading.Event()

    def keep_adding(number: int) -> None:
        while not over.is_set():
            statuses.append(add(live, key, f"rolling-{number}", "/memory/add_sync"))

    before = turns(live)
    callers = [threading.Thread(target=keep_adding, args=(number,)) for number in range(4)]
    for caller in callers:
        caller.start()
    for _ in range(2):
        done = len(statuses)
        wait_until(lambda done=done: len(statuses) > done + 10)
        live.running["web"].send_signal(signal.SIGHUP)
        time.sleep(3)
    over.set()
    for caller in callers:
        caller.join()
    assert set(statuses) == {200}
    # The same words again are known for a repetition.
    assert turns(live) >= before + 4


def test_7_a_backup_is_restored_elsewhere(live: Installation, key: str):
    path = live.folder / "kept.dump"
    done = live.manage("backup", str(path), "--json")
    assert done.returncode == 0, done.stderr
    live.sql("CREATE DATABASE elsewhere")
    url = live.settings["DATABASE_URL"].replace("/mirix?", "/elsewhere?")
    done = live.manage("restore", str(path), "--json", DATABASE_URL=url, MIRIX_REDIS_URL="")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["unapplied_migrations"] == []
    assert "acme" in live.manage("organizations", "--json", DATABASE_URL=url).stdout


def test_8_the_log_is_json_and_quotes_nobody(live: Installation, key: str):
    assert add(live, key, "logged", "/memory/add_sync") == 200
    traced = {"X-API-Key": key, "X-Request-ID": "trace-8"}
    status, headers, _ = live.get("/v1/sessions/canary-session", **traced)
    assert (status, headers["X-Request-ID"]) == (404, "trace-8")
    wait_until(lambda: "trace-8" in live.log("web"))
    lines = [json.loads(line) for line in live.log("web").splitlines()]
    (told,) = [line for line in lines if line.get("request_id") == "trace-8" and "route" in line]
    assert (told["route"], told["status"]) == ("/v1/sessions/<id:session_id>", 404)
    requests = [line["request_id"] for line in lines if "route" in line]
    assert len(requests) == len(set(requests)) > 1
    for line in live.log("worker").splitlines():
        assert line == "Launching a worker on all queues" or json.loads(line)["level"]
    said = live.log("web") + live.log("worker") + live.log("db")
    secrets = (live.password, live.metrics_token, live.settings["MIRIX_SECRET_KEY"])
    for secret in (WORDS, "canary", key, *secrets):
        assert secret not in said
