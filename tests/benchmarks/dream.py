"""What a run with a model costs besides the model: time, memory, connections, and length of prompts.

A real worker does runs of 40 sessions, one after the other, against a scripted endpoint that takes a second
for each answer. The ideal is that the endpoint is always busy with as many questions as may be asked at once.
The first run warms the worker up and is told apart: it imports what a chat needs.

Then two owners with 10 and with 1,000 skills have the same session distilled, and the prompts are compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from django.db import connection

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import AutoDreamRun, DistillationAttempt, RunState, RunTrigger
from skills.search.index import index_skill
from skills.triggers import request_run
from tests.benchmarks import Report, Tell, spread
from tests.benchmarks.ingest import resident
from tests.benchmarks.library import Library
from tests.benchmarks.sessions import messages
from tests.endpoints import ChatAnswer, ChatRequest, ChatServer, scripted_chat
from tests.factories import make_owner, make_session, make_skill
from tests.skills.distillation.answers import answer, told

SESSIONS, CONCURRENCY, SECONDS_A_CALL = 40, 4, 1.0
TURNS = 120
ROUNDS = 3
LIBRARIES = (10, 1_000)
SKILL_LINES = 20
GLANCE_SECONDS = 0.05
PATIENCE_SECONDS = 120.0
POOL_AND_LISTENER, JOB_THREADS = 4 + 1, 1
"""What Procrastinate's worker holds, and how many jobs it does at once."""
GOALS = {"time": 1.15, "connections": POOL_AND_LISTENER + JOB_THREADS, "prompt_growth": 0.05}
_numbers = count()


@dataclass
class Watch:
    """What was seen of a worker during one round."""

    memory_kb: list[int] = field(default_factory=list)
    connections: int = 0
    """The most at once."""

    def look(self, pid: int) -> None:
        self.memory_kb.append(resident(pid))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            self.connections = max(self.connections, cursor.fetchone()[0])


@dataclass(frozen=True, kw_only=True)
class Round:
    """One run of all sessions."""

    seconds: float
    calls: int
    watch: Watch

    @property
    def ratio(self) -> float:
        """How long it took, against the ideal."""
        return self.seconds / ideal_seconds(SESSIONS, CONCURRENCY, SECONDS_A_CALL)


def ideal_seconds(sessions: int, at_once: int, seconds: float) -> float:
    return -(-sessions // at_once) * seconds


def measure(tell: Tell, _options: argparse.Namespace) -> Report:
    """Measure runs, then prompts."""
    rounds: list[Round] = []
    with scripted_chat() as model, _worker(model) as pid:
        model.answer = _learn
        for number in range(ROUNDS + 1):
            tell(f"dream: round {number} of {ROUNDS}")
            rounds.append(_round(model, pid))
        prompts = {}
        for skills in LIBRARIES:
            tell(f"dream: a library of {skills} skills")
            prompts[skills] = _prompt(model, skills)
    return Report(figures=_figures(rounds, prompts), lines=_lines(rounds, prompts))


@contextmanager
def _worker(model: ChatServer) -> Iterator[int]:
    """Run a worker that asks this model; its process id."""
    settings = {
        "MIRIX_DISTILLER_MAX_CONCURRENCY": str(CONCURRENCY),
        "MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD": "0",  # no runs but those that are measured
    }
    process = subprocess.Popen(
        [sys.executable, "manage.py", "worker"], env=os.environ | model.environment | settings
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _learn(request: ChatRequest) -> ChatAnswer:
    """One lesson that nothing stands for: what it costs does not depend on what it says."""
    lesson = told(2, "a quote of nobody", title=f"Lesson {request.number}", topic=f"task:{request.number}")
    return ChatAnswer(text=answer(lesson), slow=SECONDS_A_CALL)


def _fill(owner: Owner, sessions: int) -> None:
    for number in range(sessions):
        name = f"bench-{next(_numbers)}"
        make_session(owner, turns(number), session_id=name)


def turns(number: int) -> list[dict[str, Any]]:
    """Return the turns of a made-up session as they are stored."""
    return [
        {
            "role": message["role"],
            "content": message["content"] or "Let me look that up.",
            "tool_calls": [call["function"] for call in message.get("tool_calls", [])],
        }
        for message in messages(number, TURNS)
    ]


def _round(model: ChatServer, pid: int) -> Round:
    owner = make_owner()
    _fill(owner, SESSIONS)
    model.requests.clear()
    watch = Watch()
    began = time.perf_counter()
    run = request_run(owner=owner, trigger=RunTrigger.API, parameters={"last_n_sessions": SESSIONS})
    _wait(run, pid, watch)
    seconds = time.perf_counter() - began
    verdicts = DistillationAttempt.objects.for_owner(owner).values_list("verdict", flat=True)
    assert Counter(verdicts) == {"ok": SESSIONS}
    assert model.most_at_once == CONCURRENCY
    return Round(seconds=seconds, calls=model.calls, watch=watch)


def _wait(run: AutoDreamRun, pid: int, watch: Watch) -> None:
    """Watch the worker until the run has finished."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while run.state != RunState.FINISHED:
        assert time.monotonic() < deadline, f"{run.pk} is {run.state}: {run.error}"
        time.sleep(GLANCE_SECONDS)
        watch.look(pid)
        run.refresh_from_db()


def _prompt(model: ChatServer, skills: int) -> int:
    """Return how many characters the model is sent for one session of an owner with so many skills."""
    owner, library = make_owner(), Library(1)
    for number in range(skills):
        fields = library.skill(number, SKILL_LINES)
        content = Content(
            **{name: fields[name] for name in ("name", "description", "instructions", "triggers")}
        )
        index_skill(make_skill(owner, content))
    _fill(owner, 1)
    model.requests.clear()
    run = request_run(owner=owner, trigger=RunTrigger.API)
    _wait(run, os.getpid(), Watch())
    (request,) = model.requests
    return len(request.system) + len(request.user)


def _growth(figures: dict[int, int]) -> float:
    small, large = LIBRARIES
    return figures[large] / figures[small] - 1


def _memory(rounds: list[Round]) -> dict[str, int]:
    """Return the worker's memory in KB: at the end of the first round, and at most in the others."""
    first, *others = rounds
    later = [size for each in others for size in each.watch.memory_kb]
    return {"rss_kb_warm": first.watch.memory_kb[-1], "rss_kb_peak": max(later)}


def _figures(rounds: list[Round], prompts: dict[int, int]) -> dict[str, Any]:
    first, *others = rounds
    return {
        "sessions": SESSIONS,
        "turns_per_session": TURNS,
        "seconds_per_call": SECONDS_A_CALL,
        "concurrency": CONCURRENCY,
        "rounds": ROUNDS,
        "ratio_to_ideal": spread([each.ratio for each in others], 3),
        "ratio_to_ideal_cold": round(first.ratio, 3),
        "calls": max(each.calls for each in rounds),
        "memory": _memory(rounds),
        "connections": max(each.watch.connections for each in rounds),
        "prompt_characters": {str(skills): length for skills, length in prompts.items()},
        "prompt_growth": round(_growth(prompts), 4),
        "goals": GOALS,
    }


def _lines(rounds: list[Round], prompts: dict[int, int]) -> list[str]:
    figures = _figures(rounds, prompts)
    time, memory, connections = figures["ratio_to_ideal"], figures["memory"], figures["connections"]
    warm, peak = memory["rss_kb_warm"], memory["rss_kb_peak"]
    small, large = LIBRARIES
    what = f"{ROUNDS} runs of {SESSIONS} sessions of {TURNS} turns, {CONCURRENCY} at once"
    shown = {
        what: f"{SECONDS_A_CALL:g} s a call",
        "time, to the ideal": (
            f"{time['median']:.2f} ({time['min']:.2f}–{time['max']:.2f})  {_goal(time['median'], 'time')}; "
            f"the first run of a worker {figures['ratio_to_ideal_cold']:.2f}"
        ),
        "calls of a run": f"{figures['calls']}",
        "memory of the worker": (
            f"{warm / 1024:.0f} MB after the first run, {peak / 1024:.0f} MB at most, "
            f"growth {100 * (peak - warm) / warm:.0f} %"
        ),
        "connections of the worker": f"{connections}  {_goal(connections, 'connections')}",
        "prompt": (
            f"{prompts[small]} characters with {small} skills, {prompts[large]} with {large}, "
            f"growth {100 * _growth(prompts):.1f} %  {_goal(_growth(prompts), 'prompt_growth')}"
        ),
    }
    return [f"{name}: {value}" for name, value in shown.items()]


def _goal(value: float, name: str) -> str:
    return f"goal {GOALS[name]:g} {'reached' if value <= GOALS[name] else 'MISSED'}"
