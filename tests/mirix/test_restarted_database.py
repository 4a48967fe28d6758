"""PostgreSQL goes away while a run is going on, and comes back: nothing is lost, nothing is asked twice."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skills.distillation.reply import SCHEMA_NAME
from tests.endpoints import ChatAnswer, ChatRequest, ChatServer, scripted_chat
from tests.mirix.states import PATIENCE_SECONDS, State, wait_until
from tests.skills.distillation.answers import answer, told

pytestmark = pytest.mark.processes

OWNER = ("--organization", "acme", "--user", "alice")
SESSIONS = 12
ANSWERS = """
SELECT json_agg(s.session_id || ' ' || a.verdict ORDER BY s.session_id)
FROM skills_distillationattempt a JOIN conversations_session s ON s.id = a.session_id
"""
LEFT = "SELECT count(*) FROM conversations_session WHERE state <> 'distilled'"
RUNS = "SELECT string_agg(DISTINCT state || ' ' || fence, ', ') FROM skills_autodreamrun WHERE fence > 0"


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A model that finds nothing worth keeping, slowly."""
    with scripted_chat() as served:
        served.answer = lambda request: ChatAnswer(text="[]", slow=0.3)
        yield served


@pytest.fixture
def state(migrated_state: State, place: Path) -> State:
    """A state with sealed sessions, which nobody is at work on."""
    path = place / "sessions.jsonl"
    with path.open("w") as file:
        for number in range(SESSIONS):
            told = [{"role": "user", "content": f"Please cancel my order {number}."}]
            file.write(json.dumps({"session_id": f"order-{number:02}", "messages": told}) + "\n")
    assert migrated_state.manage("import_sessions", str(path), *OWNER).returncode == 0
    return migrated_state


def assert_asked_once(state: State, model: ChatServer) -> None:
    asked = (re.findall(r"cancel my order (\d+)", request.user) for request in model.requests)
    assert Counter(number for (number,) in asked) == Counter(map(str, range(SESSIONS)))
    assert state.ask(ANSWERS.strip()) == str([f"order-{number:02} empty" for number in range(SESSIONS)])


def test_a_command_goes_on(state: State, model: ChatServer):
    """The server crashed; who needs it next starts it again."""
    command = state.start(
        *("manage.py", "auto_dream", *OWNER, "--last-n-sessions", "99", "--json"), env=model.environment
    )
    wait_until(lambda: model.calls >= 5)
    state.postmaster.kill()
    out, errors = command.communicate(timeout=PATIENCE_SECONDS)

    assert command.returncode == 0, errors
    assert "The database is out of reach" in errors
    assert json.loads(out)["sessions"]["empty"] == SESSIONS
    assert_asked_once(state, model)
    assert state.ask(RUNS) == "finished 1"


def test_a_worker_goes_on(state: State, model: ChatServer):
    """It is the same worker and the same claim; a run of its own follows for the sessions that are left."""
    worker = state.start("manage.py", "worker", env=model.environment, stderr=subprocess.STDOUT)
    wait_until(lambda: model.calls >= 3)
    state.server.stop()
    wait_until(lambda: model.calls >= 10)
    state.manage("auto_dream", *OWNER, env=model.environment)  # less than it takes to start a run by itself
    assert worker.poll() is None
    worker.terminate()
    out, _ = worker.communicate(timeout=PATIENCE_SECONDS)

    assert worker.returncode == 0, out
    assert "The worker hears of no new jobs" in out
    assert state.ask(LEFT) == "0"
    assert_asked_once(state, model)
    assert state.ask(RUNS) == "finished 1"


def test_a_worker_that_cannot_go_on_ends_as_what_has_failed(state: State):
    """An outage was longer than its connections wait, and it heard of that when the database was back."""
    code = """
import asyncio
from django.core.management import execute_from_command_line
from procrastinate import worker
from procrastinate.exceptions import ConnectorException
async def fail(self):
    await asyncio.sleep(0.5)
    raise ConnectorException("couldn't get a connection after 30.00 sec")
worker.Worker._update_heartbeat = fail
execute_from_command_line(["manage.py", "worker"])
"""
    done = state.run("-c", code)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "The worker could not go on, and stopped."


def test_a_worker_that_is_to_stop_when_all_is_done_has_not_failed(state: State):
    assert state.manage("worker", "--one-shot").returncode == 0


def test_an_answer_that_proposes_is_not_lost(state: State, model: ChatServer):
    """It comes when the server is gone."""
    lesson = told(1, "cancel my order", signal="user_critique")
    evolving: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatAnswer:
        if request.schema_name == SCHEMA_NAME:
            return ChatAnswer(text=answer(lesson))
        evolving.append(request)
        state.postmaster.kill()
        return ChatAnswer(text="[]")

    model.answer = respond
    command = state.start("manage.py", "auto_dream", *OWNER, "--json", env=model.environment)
    out, errors = command.communicate(timeout=PATIENCE_SECONDS)

    assert command.returncode == 0, errors
    assert "The database is out of reach" in errors
    assert json.loads(out)["sessions"]["distilled"] == 5
    assert len(evolving) == 1
    assert state.ask("SELECT string_agg(verdict, ',') FROM skills_proposercall") == "empty"
