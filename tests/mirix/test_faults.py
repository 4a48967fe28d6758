"""What mirix depends on fails while clients add and search: nothing acknowledged is lost, refusals say so."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

import pytest

from tests.endpoints import ChatAnswer, ChatServer, scripted_chat
from tests.mirix.served import Served
from tests.mirix.states import ASK, SOAK, State, opened, wait_until
from tests.mirix.traffic import Traffic

pytestmark = [pytest.mark.processes, pytest.mark.soak]

CLIENTS = 200 if SOAK else 24
RESTARTS = 5 if SOAK else 2
PROCEED = 100 if SOAK else 20
"""So many requests of each kind are done between two faults."""
UNTHROTTLED = {"MIRIX_THROTTLE_READ": "0", "MIRIX_THROTTLE_WRITE": "0", "MIRIX_THROTTLE_SEARCH": "0"}
UNASKED_NEVER = {"MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD": "0"}
"""No runs but those that are asked for."""
UNAVAILABLE = {"detail": "The database is not available; try again shortly."}
NO_ROOM = {"detail": "The database has no room left; try again when an operator has made some."}
WAITING = "SELECT count(*) FROM conversations_intakerecord WHERE state <> 'stored'"
UNREAD = "SELECT count(*) FROM conversations_session WHERE state <> 'distilled'"
UNFINISHED = "SELECT count(*) FROM skills_autodreamrun WHERE state <> 'finished'"
VERDICTS = """
SELECT json_agg(json_build_array(verdict, count)) FROM
(SELECT verdict, count(*) FROM skills_distillationattempt GROUP BY 1 ORDER BY 1) found
"""
STORED = "SELECT json_agg(content) FROM conversations_conversationmessage"


@pytest.fixture
def key(migrated_state: State) -> str:
    made = migrated_state.manage("create_api_key", "--organization", "o", "--client", "c", "--json")
    return str(json.loads(made.stdout)["key"])


def stored(state: State) -> list[str]:
    found = state.ask(f"SELECT coalesce(({STORED})::text, '[]')")
    return sorted(json.loads(found))


def go_on(traffic: Traffic) -> None:
    """Wait until clients get through again."""
    adds, searches = traffic.done("add") + PROCEED, traffic.done("search") + PROCEED
    traffic.wait_for(lambda: traffic.done("add") >= adds and traffic.done("search") >= searches)


def assert_nothing_is_lost(state: State, traffic: Traffic) -> None:
    """Whatever was acknowledged is stored, the worker's part included, and nothing twice."""
    wait_until(lambda: state.ask(WAITING) == "0")
    found = stored(state)
    assert not set(traffic.added) - set(found), "acknowledged, and not there"
    assert len(found) == len(set(found)), "there twice"


def test_postgresql_is_killed_under_load(migrated_state: State, key: str):
    served = Served(migrated_state, **UNTHROTTLED)
    with Traffic(served.port, key).flowing(CLIENTS) as traffic:
        for _ in range(RESTARTS):
            go_on(traffic)
            migrated_state.postmaster.kill()
            wait_until(lambda: migrated_state.ready)
        go_on(traffic)
    assert traffic.odd == []
    assert {status for status, _, _ in traffic.refusals} <= {503}
    assert all((retry, body) == ("5", UNAVAILABLE) for _, retry, body in traffic.refusals), traffic.refusals[
        :3
    ]
    assert_nothing_is_lost(migrated_state, traffic)


@contextmanager
def redis_at(socket: Path) -> Iterator[None]:
    """Run a Redis until the block ends, and then kill it."""
    program = shutil.which("redis-server")
    assert program, "redis-server is missing"
    process = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"],
        cwd=socket.parent,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(socket.exists)
        yield
    finally:
        process.kill()
        process.wait()
        socket.unlink(missing_ok=True)


def test_redis_is_killed_under_load_and_comes_back(migrated_state: State, key: str, place: Path):
    socket = place / "redis.sock"
    environment = UNTHROTTLED | {"MIRIX_REDIS_URL": f"unix://{socket}?db=0"}
    with redis_at(socket):
        served = Served(migrated_state, **environment)
    with Traffic(served.port, key).flowing(CLIENTS) as traffic:
        for _ in range(RESTARTS):
            go_on(traffic)
            with redis_at(socket):
                go_on(traffic)
        go_on(traffic)
    assert (traffic.odd, traffic.refusals) == ([], [])
    assert_nothing_is_lost(migrated_state, traffic)


@pytest.fixture
def small_disk(migrated_state: State, place: Path) -> Iterator[State]:
    """A state on a disk of its own that has 24 MB left."""
    folder = place / "disk"
    folder.mkdir()
    used = sum(path.stat().st_blocks * 512 for path in migrated_state.var_dir.rglob("*"))
    size = f"size={used + 24_000_000}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=0755,{size}", "tmpfs", folder], check=True)
    try:
        migrated_state.copy_to(folder / "var")
        with opened(folder / "var") as state:
            yield state
    finally:
        subprocess.run(["umount", folder], check=True)


def test_the_disk_is_full_and_gets_room_again(small_disk: State):
    made = small_disk.manage("create_api_key", "--organization", "o", "--client", "c", "--json")
    served = Served(small_disk, **UNTHROTTLED)
    traffic = Traffic(served.port, str(json.loads(made.stdout)["key"]))
    ballast = small_disk.var_dir.parent / "ballast"
    with traffic.flowing(4):
        go_on(traffic)
        fill(ballast)
        traffic.wait_for(lambda: traffic.statuses["add 503"] >= 5)
        assert served.get("/health")[0] == 200
        ballast.unlink()
        go_on(traffic)
    assert traffic.odd == []
    assert {(status, retry) for status, retry, _ in traffic.refusals} == {(503, "5")}
    assert NO_ROOM in [body for _, _, body in traffic.refusals]
    assert_nothing_is_lost(small_disk, traffic)
    assert_readable(small_disk)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        for size in (1_000_000, 4_096):
            with pytest.raises(OSError, match="No space left"):
                file.writelines(repeat(bytes(size)))


def assert_readable(state: State) -> None:
    """Read every row of every table; pages have check sums."""
    tables = json.loads(
        state.ask("SELECT json_agg(format('%I.%I', schemaname, tablename)) FROM pg_tables").replace("'", '"')
    )
    for table in tables:
        state.ask(f"SELECT count(t::text) FROM {table} t")


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model that finds nothing worth keeping, slowly."""
    with scripted_chat() as served:
        served.answer = lambda request: ChatAnswer(text="[]", slow=0.2)
        yield served


def fill_with_sessions(state: State, place: Path, users: int, sessions: int) -> None:
    """Import sealed sessions of several end users."""
    for user in range(users):
        path = place / f"user-{user}.jsonl"
        with path.open("w") as file:
            for number in range(sessions):
                told = [{"role": "user", "content": f"Please cancel my order {user}-{number}."}]
                file.write(json.dumps({"session_id": f"o-{number}", "messages": told}) + "\n")
        whose = ("--organization", "o", "--user", f"user-{user}")
        done = state.manage("import_sessions", str(path), *whose, env=UNASKED_NEVER)
        assert done.returncode == 0, done.stderr


def asked(model: ChatServer) -> Counter[str]:
    """How often each session was told to the model."""
    found = (re.findall(r"cancel my order (\d+-\d+)", request.user) for request in model.requests)
    return Counter(name for names in found for name in names)


def test_one_of_two_worker_hosts_is_killed(migrated_state: State, key: str, place: Path, model: ChatServer):
    users, sessions = 4, 6
    fill_with_sessions(migrated_state, place, users, sessions)
    environment = UNTHROTTLED | UNASKED_NEVER | model.environment | {"MIRIX_WORKER_STALLED_SECONDS": "3"}
    served = Served(migrated_state, **environment)
    other = migrated_state.start("manage.py", "worker", env=environment, stderr=subprocess.STDOUT)
    traffic = Traffic(served.port, key)
    wait_until(lambda: migrated_state.ask("SELECT count(*) FROM procrastinate_workers") == "2")
    for user in range(users):
        path = f"/memory/auto_dream?wait=0&user_id=user-{user}"
        assert traffic.send("dream", "POST", path, {"last_n_sessions": 99}), (traffic.refusals, traffic.odd)
    wait_until(lambda: model.calls >= users)
    other.kill()
    wait_until(lambda: migrated_state.ask(UNREAD) == "0")
    wait_until(lambda: migrated_state.ask(UNFINISHED) == "0")

    wanted = {f"{user}-{number}" for user in range(users) for number in range(sessions)}
    assert set(asked(model)) == wanted
    assert migrated_state.ask(VERDICTS) == str([["empty", users * sessions]])
    assert traffic.refusals == []
    assert served.child("worker") is not None


DUE = ASK + "\nfrom skills.triggers import trigger_all_due\ntrigger_all_due()"
"""What the worker does each minute."""
RESTING = """
SELECT (SELECT count(*) FROM conversations_session
        WHERE state = 'sealed' AND attempts <= 1 AND next_attempt_at > now()) || ' '
    || (SELECT count(*) FROM skills_autodreamrun WHERE state IN ('running', 'queued'))
"""
"""Sessions that rest, and runs that are going on."""
ENDED = "SELECT count(*) FROM skills_autodreamrun WHERE state NOT IN ('running', 'queued')"
STATES = """
SELECT json_object_agg(state, count) FROM
(SELECT state, count(*) FROM conversations_session GROUP BY 1) found
"""


def let_pass(state: State, minutes: int) -> None:
    """Move every time of sessions, runs and jobs into the past: the queue reads the database's clock."""
    columns = json.loads(state.ask(TIMES).replace("'", '"'))
    for table, names in columns.items():
        changes = ", ".join(f"{name} = {name} - interval '{minutes} minutes'" for name in names)
        state.ask(f"UPDATE {table} SET {changes}")


TIMES = """
SELECT json_object_agg(table_name, names) FROM (
  SELECT table_name, json_agg(column_name) AS names FROM information_schema.columns
  WHERE table_name IN ('conversations_session', 'skills_autodreamrun', 'procrastinate_jobs')
    AND data_type = 'timestamp with time zone' GROUP BY 1) found
"""


def test_a_model_that_is_dead_for_an_hour_costs_nothing(
    migrated_state: State, key: str, place: Path, model: ChatServer
):
    sessions, rounds = 3, 12 if SOAK else 4
    fill_with_sessions(migrated_state, place, 1, sessions)
    served = Served(migrated_state, **UNTHROTTLED, **model.environment, MIRIX_LLM_MAX_RETRIES="0")
    model.answer = lambda request: ChatAnswer(closes=True)
    began = Traffic(served.port, key).send(
        "dream", "POST", "/memory/auto_dream?wait=0&user_id=user-0", {"last_n_sessions": 99}
    )
    assert began
    for ended in range(1, rounds + 1):
        wait_until(lambda ended=ended: int(migrated_state.ask(ENDED)) >= ended)
        wait_until(lambda: migrated_state.ask(RESTING) == f"{sessions} 0")
        if ended == rounds:
            model.answer = lambda request: ChatAnswer(text="[]")
        let_pass(migrated_state, 60 // rounds)
        assert migrated_state.run("-c", DUE).returncode == 0
    wait_until(lambda: migrated_state.ask(STATES) == str({"distilled": sessions}))

    assert migrated_state.ask(VERDICTS) == str([["empty", sessions], ["retry", model.calls - sessions]])
    assert served.child("worker") is not None
