"""`serve` as a real process: web, worker and database start, stop and die together."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
from collections.abc import Callable
from functools import partial

import pytest

from tests.mirix.served import Served
from tests.mirix.states import SOAK, State, wait_until

pytestmark = pytest.mark.processes
CHUNKED = b"Host: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def serve(migrated_state: State) -> Callable[..., Served]:
    return partial(Served, migrated_state)


def workers(state: State) -> int:
    """How many workers registered in the database."""
    return int(state.ask("SELECT count(*) FROM procrastinate_workers"))


def test_it_answers_and_runs_a_worker(serve: Callable[..., Served], migrated_state: State):
    served = serve()
    status, body = served.get("/health")
    assert (status, json.loads(body)["status"]) == (200, "healthy")
    status, body = served.get("/admin/login/")
    assert status == 200
    assert b"mirix" in body.lower()
    wait_until(lambda: workers(migrated_state) == 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_of_it_cleanly(serve: Callable[..., Served], migrated_state: State, number: int):
    served = serve()
    wait_until(lambda: workers(migrated_state) == 1)
    served.process.send_signal(number)
    assert served.process.wait(60) == 0
    assert served.process.stdout.read() == "Stopping …\nStopped.\n"
    assert migrated_state.processes() == []
    assert not (migrated_state.var_dir / "postgres" / "postmaster.pid").exists()
    assert workers(migrated_state) == 0, "the worker left without saying so"


@pytest.mark.soak
def test_kill_9_of_it_leaves_nothing_running_and_it_starts_again(
    serve: Callable[..., Served], migrated_state: State
):
    for _ in range(10 if SOAK else 1):
        served = serve()
        served.process.kill()
        served.process.wait()
        wait_until(lambda: migrated_state.processes() == [])
    assert serve().get("/health")[0] == 200


def test_kill_9_of_everything_loses_nothing(serve: Callable[..., Served], migrated_state: State):
    serve()
    assert migrated_state.manage("create_organization", "kept").returncode == 0
    migrated_state.kill_everything()
    assert serve().get("/health")[0] == 200
    assert migrated_state.ask("SELECT name FROM tenants_organization") == "kept"


def test_a_worker_that_died_is_replaced(serve: Callable[..., Served], migrated_state: State):
    served = serve()
    wait_until(lambda: workers(migrated_state) == 1)
    first = served.child("worker")
    first.kill()
    wait_until(lambda: served.child("worker") not in (None, first))
    wait_until(lambda: workers(migrated_state) == 2)  # the dead one's row is pruned later


def test_a_database_that_died_is_started_again(serve: Callable[..., Served], migrated_state: State):
    served = serve()
    began = "SELECT pg_postmaster_start_time()::text"
    before = migrated_state.ask(began)
    migrated_state.postmaster.kill()
    wait_until(lambda: migrated_state.ready)
    assert migrated_state.ask(began) != before
    assert served.get("/admin/login/")[0] == 200


def test_what_the_web_server_refuses_itself_is_json(serve: Callable[..., Served]):
    served = serve()
    cases = {
        "a large header": (b"GET /health HTTP/1.1\r\nX-Large: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        "many headers": (b"GET /health HTTP/1.1\r\n" + b"X-Many: 1\r\n" * 200 + b"\r\n", 431),
        "no version": (b"GET /health HTTP/9.9\r\n\r\n", 400),
        "no request": ("\u00e9\r\n\r\n".encode(), 400),
        "a header without a name": (b"GET /health HTTP/1.1\r\n: x\r\n\r\n", 400),
        "a NUL in a header": (b"GET /health HTTP/1.1\r\nX-API-Key: a\0b\r\n\r\n", 400),
        "a path of raw UTF-8": ("GET /v1/skills/\u00e9 HTTP/1.1\r\n\r\n".encode(), 400),
        "a method in small letters": (b"get /health HTTP/1.1\r\n\r\n", 400),
        "a length that is none": (b"POST /auth/token HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        "a chunk that is none": (b"POST /nowhere HTTP/1.1\r\n" + CHUNKED + b"zz\r\n", 400),
    }
    for name, (sent, status) in cases.items():
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
            client.sendall(sent)
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert (answer.status, answer.getheader("Content-Type")) == (status, "application/json"), name
            assert list(json.loads(answer.read())) == ["detail"], name
    assert served.get("/health")[0] == 200


def test_the_metrics_are_those_of_the_one_web_process(serve: Callable[..., Served]):
    served = serve(MIRIX_METRICS_TOKEN="t")
    read = partial(served.get, "/metrics", Authorization="Bearer t")
    counts = []
    for _ in range(3):
        status, body = read()
        assert status == 200
        (count,) = re.findall(
            r'^mirix_http_requests_total{method="GET",status="200"} (\d+)$', body.decode(), re.M
        )
        counts.append(int(count))
    assert counts == [counts[0], counts[0] + 1, counts[0] + 2]
    assert served.get("/metrics")[0] == 401


def test_no_header_moves_it_below_a_path(serve: Callable[..., Served]):
    served = serve()
    assert served.get("/x/health", SCRIPT_NAME="/x") == (404, b'{"detail":"Not found."}')
    assert served.get("/health", SCRIPT_NAME="/x", PATH_INFO="/x")[0] == 200


def test_links_lead_to_the_port_that_it_listens_on(serve: Callable[..., Served], migrated_state: State):
    served = serve()
    for word in ("mirix.wsgi", "worker"):
        wait_until(lambda word=word: served.child(word))
        done = migrated_state.run(
            "-c",
            "from django.conf import settings; print(settings.MIRIX_PUBLIC_URL)",
            env=served.child(word).environ(),
        )
        assert done.stdout == f"http://127.0.0.1:{served.port}\n"


def test_a_port_in_use_is_one_line(migrated_state: State):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = migrated_state.manage("serve", "--port", str(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"CommandError: Cannot listen on 127.0.0.1 port {port}: Address already in use. "
        "Choose another by --port or MIRIX_PORT.\n"
    )
    assert migrated_state.processes() == []


def test_a_body_in_chunks_is_taken_within_the_same_bound(serve: Callable[..., Served], migrated_state: State):
    made = migrated_state.manage("create_api_key", "--organization", "o", "--client", "c", "--json")
    key = json.loads(made.stdout)["key"]
    served = serve(MIRIX_MAX_REQUEST_BYTES="1000")
    message = b'{"session_id": "s", "messages": [{"role": "user", "content": "'
    status, answer = served.post_in_chunks("/memory/add_sync", key, message, b"hel", b'lo"}]}')
    assert (status, answer["message"]) == (200, "Accepted. 1 turn stored.")
    status, answer = served.post_in_chunks("/memory/add_sync", key, message, b"x" * 1000, b'"}]}')
    assert (status, answer) == (413, {"detail": "The request body is larger than 1000 bytes."})
    assert migrated_state.ask("SELECT content FROM conversations_conversationmessage") == "hello"
