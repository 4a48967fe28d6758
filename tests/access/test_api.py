"""Every route × method × credential of the API: exact statuses, and nothing read or changed on a refusal."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from tests.access.api_table import PUBLIC, TABLE
from tests.access.conftest import undone
from tests.access.routes import Row, gaps, others, read_table, registered
from tests.access.world import PASSWORD, Stored, World, everything, everything_of

pytestmark = pytest.mark.django_db

NOBODY = (
    "nobody",
    "unknown key",
    "revoked key",
    "expired key",
    "id alone",
    "no token",
    "expired token",
)
CALLERS = {
    "nobody": NOBODY,
    "anybody": ("nobody", "unknown key"),
    "read": ("read key",),
    "write": ("write key",),
    "admin": ("admin key",),
    "reviewer": ("reviewer",),
    "operator": ("operator",),
    "administrator": ("administrator",),
    "superuser": ("superuser",),
    "stranger": ("stranger's admin key",),
    "foreign": ("stranger's token", "superuser elsewhere"),
}
ELSEWHERE = ("stranger", "foreign")
FROM_ELSEWHERE = {name for column in ELSEWHERE for name in CALLERS[column]}
MESSAGES = [{"role": "user", "content": "No, the other one."}]
BODIES: dict[str, Any] = {
    "auth/token": {"username": "operator-of-home", "password": PASSWORD},
    "auth/token/refresh": {"refresh": "a.b.c"},
    "memory/add": {"messages": MESSAGES, "session_id": "new"},
    "memory/add_sync": {"messages": MESSAGES, "session_id": "new"},
    "memory/auto_dream": {},
    "users/create_or_get": {"user_id": "user-of-home"},
    "v1/experiences/<id:pk>/release": {"reason": "So."},
    "v1/proposals/<id:pk>/reject": {"reason": "No."},
}
"""What is sent, by route; elsewhere an empty object."""
IDS = {
    "clients/": "tenants.client",
    "memory/procedural/": "skills.skill",
    "users/": "tenants.enduser",
    "v1/sessions/": "conversations.session",
    "v1/intake/": "conversations.intakerecord",
    "v1/experiences/": "skills.skillexperience",
    "v1/runs/": "skills.autodreamrun",
    "v1/skills/": "skills.skill",
    "v1/proposals/": "skills.skillrevision",
}
"""Which row a path names, by its beginning."""
LOGGED = {"memory/search", "memory/search_all_users"}
"""Routes that only read, and leave a line in the log of who asks."""
ROUTES = [route.path or "/" for route in registered() if not route.name.startswith("admin:")]
ROWS = read_table(TABLE)
PUBLIC_ROWS = read_table(PUBLIC)
NOT_THERE = dict.fromkeys(ROWS[0].statuses, 405) | {"nobody": 401}
ALL = [*ROWS, *others(ROWS, NOT_THERE), *PUBLIC_ROWS, *others(PUBLIC_ROWS, {"anybody": 405})]
CLIENT = Client(raise_request_exception=False)
QUERY = "?user_id=user-of-home"
MORE_QUERY = {  # lists and searches refuse what they do not know
    "memory/auto_dream": "&wait=0",
    "memory/search": "&query=canary",
    "memory/search_all_users": "&query=canary",
}


def send(world: World, name: str, method: str, route: str, missing: bool = False) -> HttpResponse:
    """Call a route once as one of the world's callers."""
    body = "" if method in ("GET", "HEAD", "OPTIONS") else json.dumps(BODIES.get(route, {}))
    path, headers = path_of(world, route, missing), world.headers[name]
    return CLIENT.generic(method, path, body, content_type="application/json", headers=headers)


def path_of(world: World, route: str, missing: bool = False) -> str:
    """Return the path to a row at home, or to none."""
    if "<" in route:
        label = next((label for start, label in IDS.items() if route.startswith(start)), None)
        assert label, f"{route}: say in IDS of {__name__} which row it names"
        row = world.home.rows[label]
        name = row.session_id if label == "conversations.session" else row.pk
        before, _, rest = route.partition("<")
        route = f"{before}{'missing' if missing else name}{rest.partition('>')[2]}"
    return f"/{route.removeprefix('/')}{QUERY}{MORE_QUERY.get(route, '')}"


def test_every_route_is_in_the_table():
    problems = gaps([*ROWS, *PUBLIC_ROWS], ROUTES)
    assert not problems, "\n".join(["tests/access/api_table.py:", *problems])


@pytest.mark.parametrize("row", ALL, ids=str)
def test_statuses(world: World, row: Row):
    stored = Stored.now(world)
    problems: list[str] = []
    with undone():
        for column, expected in row.statuses.items():
            for name, method in product(CALLERS[column], row.methods):
                if expected < 400 and (method not in ("GET", "HEAD") or row.route in LOGGED):
                    problems += writing(world, row.route, method, name, expected, stored)
                else:
                    problems += reading(world, row.route, method, name, expected)
        if everything() != stored.all:
            problems.append("one of those that may not write has changed something")
    assert not problems, "\n".join([f"/{row.route}", *problems])


def writing(world: World, route: str, method: str, name: str, expected: int, stored: Stored) -> list[str]:
    """Make a call that is accepted; return what is wrong with the answer and with what was changed."""
    with undone():
        found = reading(world, route, method, name, expected)
        if name in FROM_ELSEWHERE and everything_of(world.home) != stored.home:
            found.append(f"{name} {method} changes what belongs to the organization")
        if name not in FROM_ELSEWHERE and everything_of(world.away) != stored.away:
            found.append(f"{name} {method} changes what belongs to another organization")
        return found


def reading(world: World, route: str, method: str, name: str, expected: int) -> list[str]:
    """Make a call; return what is wrong with the status and with what was read."""
    answer = send(world, name, method, route)
    status, text = answer.status_code, answer.content.decode()
    found = [] if status == expected else [f"{name} {method}: {status}, the table says {expected}"]
    if (status >= 400 or name in FROM_ELSEWHERE) and world.home.canary in text:
        found.append(f"{name} {method} reads what belongs to the organization")
    if (status >= 400 or name not in FROM_ELSEWHERE) and world.away.canary in text:
        found.append(f"{name} {method} reads what belongs to another organization")
    return found


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_said_to_be_allowed_is_what_is_there(world: World, route: str):
    """`Allow` names the methods of the table, and no OPTIONS."""
    there = {method for row in [*ROWS, *PUBLIC_ROWS] if row.route == route for method in row.methods}
    answer = send(world, "administrator", "OPTIONS", route)

    assert answer.status_code == 405
    assert answer.content == b'{"detail":"Method \\"OPTIONS\\" not allowed."}'
    assert set(answer["Allow"].split(", ")) == there


def test_what_the_canaries_prove(world: World):
    """Reading at home shows the canary of home: its absence elsewhere means that nothing was read."""
    silent = [
        row.route
        for row in ROWS
        if "GET" in row.methods and row.statuses["admin"] == 200
        if world.home.canary not in send(world, "admin key", "GET", row.route).content.decode()
    ]
    assert silent == ["v1/usage"]  # numbers and days alone


@pytest.mark.parametrize("route", [route for route in ROUTES if "<" in route])
def test_what_is_missing_and_what_is_foreign_are_one_answer(world: World, route: str):
    """The same status, the same headers, the same bytes."""
    rows = [row for row in ROWS if row.route == route]
    for row in rows:
        for column in ELSEWHERE:
            if row.statuses[column] != 404:
                continue
            for name, method in product(CALLERS[column], row.methods):
                foreign = send(world, name, method, route)
                missing = send(world, name, method, route, missing=True)
                nowhere = send(world, "superuser", method, route, missing=True)
                assert signature(foreign) == signature(missing) == signature(nowhere), f"{name} {method}"
                assert foreign.content in (b"", b'{"detail":"Not found."}')


def signature(answer: HttpResponse) -> tuple[int, bytes, dict[str, str]]:
    headers = dict(answer.headers)
    assert headers.pop("X-Request-ID", "").startswith("req-")  # each has its own
    return answer.status_code, answer.content, headers


def test_a_session_of_the_admin_opens_nothing(world: World):
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = world.cookies["superuser"]
    for row in ROWS:
        if row.methods[0] in ("GET", "POST"):
            answer = client.generic(row.methods[0], path_of(world, row.route))
            assert answer.status_code == row.statuses["nobody"], str(row)
