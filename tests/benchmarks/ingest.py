"""How fast sessions come in, against the database taking the same rows by itself.

Sessions of 30 turns, each accepted with `wait` and committed alone: by the service, and over HTTP from a real
server with an API key. The same rows, deleted and given to the same table with all its indexes and foreign
keys, by psycopg's `executemany` (which is pipelined) and by COPY: with a commit a session, which is what the
service and HTTP are compared with, and all in one transaction. All of it in turn, several times.

Then 100,000 turns are imported by the command, whose memory is watched.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import psycopg
from django.db import connection
from psycopg import sql

from conversations.envelope import checked
from conversations.intake import accept
from conversations.models import ConversationMessage
from mirix.management.commands.serve import listen, web_server
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from tests.benchmarks import Report, Tell, spread
from tests.benchmarks.sessions import lines, messages
from tests.factories import make_client, make_key, make_owner

TURNS = 30
SESSIONS = 60
REPEATS = 5
CALLERS = 4
IMPORTED_TURNS = 100_000
GLANCE_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
GOALS = {"service": 0.5, "http": 0.25}
NAMES = {
    "executemany": "executemany, a commit a session",
    "copy": "COPY, a commit a session",
    "executemany_at_once": "executemany, one commit in all",
    "copy_at_once": "COPY, one commit in all",
    "service": "service",
    "http": f"HTTP add_sync, {CALLERS} callers",
}
TABLE = ConversationMessage._meta.db_table
COLUMNS = [field.column for field in ConversationMessage._meta.concrete_fields if not field.primary_key]
COLUMN_LIST = sql.SQL(", ").join([sql.Identifier(column) for column in COLUMNS])
_numbers = count()

Rows = list[tuple[Any, ...]]


def measure(tell: Tell, _options: argparse.Namespace) -> Report:
    """Measure speed, then memory."""
    owner = make_owner()
    client = make_client(owner.organization)
    speeds: defaultdict[str, list[float]] = defaultdict(list)
    with _served() as port, _raw() as raw:
        for repeat in range(REPEATS + 1):  # the first one warms up
            tell(f"ingest: round {repeat} of {REPEATS}")
            for name, speed in _round(owner, client, raw, port):
                if repeat:
                    speeds[name].append(speed)
    tell(f"ingest: importing {IMPORTED_TURNS} turns")
    memory = _memory(owner)
    return Report(figures=_figures(speeds, memory), lines=_lines(speeds, memory))


def _round(owner: Owner, client: Client, raw: psycopg.Connection, port: int) -> Iterator[tuple[str, float]]:
    """Yield what each way stores a second."""
    sessions = [messages(next(_numbers), TURNS) for _ in range(SESSIONS)]
    name = f"bench-{next(_numbers)}"
    began = time.perf_counter()
    for number, session in enumerate(sessions):
        envelope = checked(messages=session, session_id=f"{name}-{number}")
        accept(client=client, owner=owner, envelope=envelope, wait=True)
    yield "service", _speed(began)
    rows = _taken(raw, name)
    yield "executemany", _executemany(raw, rows, TURNS)
    _taken(raw, name)
    yield "copy", _copy(raw, rows, TURNS)
    _taken(raw, name)
    yield "executemany_at_once", _executemany(raw, rows, len(rows))
    _taken(raw, name)
    yield "copy_at_once", _copy(raw, rows, len(rows))
    yield "http", _over_http(port, make_key(client), sessions)


def _speed(began: float) -> float:
    return SESSIONS * TURNS / (time.perf_counter() - began)


@contextmanager
def _raw() -> Iterator[psycopg.Connection]:
    """A plain connection to the database that Django uses."""
    known = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    with psycopg.connect(**{name: known[name] for name in names if known.get(name)}) as raw:
        yield raw


def _taken(raw: psycopg.Connection, name: str) -> Rows:
    """Take the turns of some sessions out of the table; return them, ready to be stored again."""
    raw.commit()
    taken = sql.SQL(
        "DELETE FROM {table} WHERE session_id IN "
        "(SELECT id FROM conversations_session WHERE session_id LIKE %s) RETURNING {columns}"
    ).format(table=sql.Identifier(TABLE), columns=COLUMN_LIST)
    rows = raw.execute(taken, [f"{name}-%"]).fetchall()
    raw.commit()
    raw.autocommit = True
    raw.execute(sql.SQL("VACUUM {}").format(sql.Identifier(TABLE)))
    raw.autocommit = False
    calls = COLUMNS.index("tool_calls")
    place = (COLUMNS.index("session_id"), COLUMNS.index("seq"))
    rows.sort(key=lambda row: tuple(row[column] for column in place))
    assert len(rows) == SESSIONS * TURNS
    return [(*row[:calls], json.dumps(row[calls]), *row[calls + 1 :]) for row in rows]


def _executemany(raw: psycopg.Connection, rows: Rows, batch: int) -> float:
    insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(TABLE),
        COLUMN_LIST,
        sql.SQL(", ").join([sql.Placeholder()] * len(COLUMNS)),
    )
    began = time.perf_counter()
    for start in range(0, len(rows), batch):
        with raw.cursor() as cursor:
            cursor.executemany(insert, rows[start : start + batch])
        raw.commit()
    return _speed(began)


def _copy(raw: psycopg.Connection, rows: Rows, batch: int) -> float:
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(TABLE), COLUMN_LIST)
    began = time.perf_counter()
    for start in range(0, len(rows), batch):
        with raw.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows[start : start + batch]:
                copy.write_row(row)
        raw.commit()
    return _speed(began)


@contextmanager
def _served() -> Iterator[int]:
    """Run the web server as `serve` does, alone; the port it listens at."""
    with listen("127.0.0.1", 0) as listener:
        process = subprocess.Popen(
            web_server(listener.fileno()),
            pass_fds=(listener.fileno(),),
            env=os.environ | {"MIRIX_THROTTLE_WRITE": "1000000"},
        )
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def _over_http(port: int, key: str, sessions: Sequence[list[dict[str, Any]]]) -> float:
    """Send the sessions by several callers, each over one connection."""
    name = f"http-{next(_numbers)}"
    bodies = [
        json.dumps({"session_id": f"{name}-{number}", "messages": session}).encode()
        for number, session in enumerate(sessions)
    ]
    headers = {"X-API-Key": key, "Content-Type": "application/json"}

    def send(share: Sequence[bytes]) -> None:
        http = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        for body in share:
            http.request("POST", "/memory/add_sync", body, headers)
            response = http.getresponse()
            answer = json.loads(response.read())
            assert response.status == 200, answer
            assert answer["turns"]["stored"] == TURNS, answer
        http.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(CALLERS) as callers:
        for sent in [callers.submit(send, bodies[caller::CALLERS]) for caller in range(CALLERS)]:
            sent.result()
    return _speed(began)


def _memory(owner: Owner) -> dict[str, int]:
    """Import many sessions by the command; return its memory in KB after a tenth of the time, and at most."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sessions.jsonl")
        with path.open("w") as file:
            file.writelines(lines(IMPORTED_TURNS // TURNS + 1, TURNS))
        command = [sys.executable, "manage.py", "import_sessions", str(path)]
        whose = ["--organization", owner.organization.pk, "--user", owner.end_user.user_id]
        process = subprocess.Popen([*command, *whose, "--json"], stdout=subprocess.PIPE)
        seen: list[int] = []
        while process.poll() is None:
            seen.append(resident(process.pid))
            time.sleep(GLANCE_SECONDS)
        assert process.stdout is not None
        report = json.loads(process.stdout.read())
        process.stdout.close()
    assert process.returncode == 0, report
    early = max(seen[: max(1, len(seen) // 10)])
    return {"turns": report["new_turns"], "rss_kb_after_a_tenth": early, "rss_kb_peak": max(seen)}


def resident(pid: int) -> int:
    """Return how many KB of memory a process holds; 0 when it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss // 1024)
    except psutil.NoSuchProcess:
        return 0


def _ratios(speeds: dict[str, list[float]], name: str) -> list[float]:
    """Return how the speed of one way compares with `executemany` in the same round, for each round."""
    return [own / other for own, other in zip(speeds[name], speeds["executemany"], strict=True)]


def _figures(speeds: dict[str, list[float]], memory: dict[str, int]) -> dict[str, Any]:
    return {
        "turns_per_second": {name: spread(speeds[name]) for name in NAMES},
        "ratio_to_executemany": {name: spread(_ratios(speeds, name), 3) for name in NAMES},
        "goals": GOALS,
        "import_memory": memory,
        "sessions": SESSIONS,
        "turns_per_session": TURNS,
        "repeats": REPEATS,
        "fsync": True,
    }


def _lines(speeds: dict[str, list[float]], memory: dict[str, int]) -> list[str]:
    rounds = f"{REPEATS} rounds of {SESSIONS} sessions of {TURNS} turns, with fsync"
    shown = [f"{rounds}; ratios to executemany with a commit a session, median (least–most)"]
    for name, title in NAMES.items():
        ratios = _ratios(speeds, name)
        line = f"{title:<34}{median(speeds[name]):>8.0f} turns/s  {median(ratios):.2f}"
        line += f" ({min(ratios):.2f}–{max(ratios):.2f})"
        if name in GOALS:
            reached = "reached" if median(ratios) >= GOALS[name] else "MISSED"
            line += f"  goal {GOALS[name]} {reached}"
        shown.append(line)
    early, peak = memory["rss_kb_after_a_tenth"], memory["rss_kb_peak"]
    shown.append(
        f"importing {memory['turns']} turns: {early / 1024:.0f} MB after a tenth of the time, "
        f"{peak / 1024:.0f} MB at most, growth {100 * (peak - early) / early:.0f} %"
    )
    return shown
