"""Whatever is sent to a route, the answer is JSON of the contract's status table: never HTML, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from tests.access.conftest import undone
from tests.access.routes import Row
from tests.access.test_api import CLIENT, PUBLIC_ROWS, ROWS, path_of
from tests.access.world import World

pytestmark = pytest.mark.django_db
WRITING = [row for row in [*ROWS, *PUBLIC_ROWS] if row.methods[0] in ("POST", "PUT", "PATCH", "DELETE")]
READING = [row for row in ROWS if "GET" in row.methods]
DEEP = b"[" * 20_000 + b"]" * 20_000
BODIES: dict[str, tuple[bytes, str, set[int]]] = {
    "nothing": (b"", "application/json", {400}),
    "broken": (b"{", "application/json", {400}),
    "not UTF-8": (b'{"a": "\xff"}', "application/json", {400}),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "application/json", {400}),
    "NaN": (b'{"a": NaN}', "application/json", {400}),
    "huge number": (b'{"a": 1e999}', "application/json", {400}),
    "many digits": (b'{"a": ' + b"1" * 5_000 + b"}", "application/json", {400}),
    "a key twice": (b'{"a": 1, "a": 2}', "application/json", {400}),
    "deep": (DEEP, "application/json", {400}),
    "deep within": (b'{"a": ' + DEEP + b"}", "application/json", {400}),
    "a list": (b"[]", "application/json", {400}),
    "a text": (b'"text"', "application/json", {400}),
    "null": (b"null", "application/json", {400}),
    "a form": (b"user_id=a", "application/x-www-form-urlencoded", {415}),
    "a part": (b"--x\r\n\r\n--x--", "multipart/form-data; boundary=x", {415}),
    "no type": (b"{}", "", {415}),
    "a broken type": (b"{}", ";;;", {415}),
}
VALUES: list[Any] = [None, "\u0000", "\ud800", "x" * 70_000, -1, 2**200, True, [[]], {"a": []}]
QUERIES = ("%00", "%ff%fe", "%ed%a0%80", "-1", "9" * 30, "{", "2026-13-45T99:99:99Z")
FIELDS = [
    "user_id",
    "name",
    "messages",
    "session_id",
    "session_tag",
    "filter_tags",
    "occurred_at",
    "history",
    "last_n_sessions",
    "dry_run",
    "mode",
    "model",
    "reason",
    "username",
    "password",
    "organization",
    "refresh",
]
PARAMETERS = [
    "user_id",
    "limit",
    "cursor",
    "query",
    "name",
    "status",
    "state",
    "session_id",
    "run_id",
    "skill_id",
    "client_id",
    "created_after",
    "filter_tags",
    "similarity_threshold",
    "search_method",
    "search_field",
    "memory_type",
    "explain",
    "view",
    "token_budget",
    "topic",
    "verified",
    "role",
    "action",
]
ODD_IDS = ("%00", "%ff", "%ed%a0%80", "a%2Fb", "%2e%2e", "x" * 3_000, "'", "%25", "%0a")
UNKNOWN_PATHS = ("/nowhere", "/v1", "/v1/", "/memory/", "/v1/skills/", "//v1/skills", "/auth/token/")

MARKDOWN = "text/markdown; charset=utf-8"


def fault_of(answer: HttpResponse, expected: set[int] | None = None) -> str:
    """Return what is wrong with an answer to something malformed; empty where nothing is."""
    status = answer.status_code
    if status >= 500:
        return f"{status}"
    allowed = ("application/json", MARKDOWN) if status == 200 else ("application/json",)
    if answer.content and answer["Content-Type"] not in allowed:
        return f"{status} in {answer['Content-Type']}"
    if expected and status not in expected:
        return f"{status}, not one of {sorted(expected)}: {answer.content[:200]!r}"
    if status == 400 and not isinstance(json.loads(answer.content), dict | list):
        return f"says {answer.content[:200]!r}"
    return ""


@pytest.mark.parametrize("row", WRITING, ids=str)
def test_a_malformed_body(world: World, row: Row):
    headers = world.headers["administrator"]
    problems = {}
    for name, (body, kind, expected) in BODIES.items():
        with undone():
            answer = CLIENT.generic(
                row.methods[0], path_of(world, row.route), body, content_type=kind, headers=headers
            )
            # An empty body is an empty object where every field may be left out.
            allowed = expected | {200, 201, 202, 401} if name == "nothing" else expected
            if fault := fault_of(answer, allowed):
                problems[name] = fault
    assert problems == {}


@pytest.mark.parametrize("row", WRITING, ids=str)
def test_a_value_of_another_type_or_size(world: World, row: Row):
    headers = world.headers["administrator"]
    problems = {}
    for field in FIELDS:
        for value in VALUES:
            body = json.dumps({"messages": [{"role": "user", "content": "x"}], "reason": "x", field: value})
            with undone():
                answer = CLIENT.generic(
                    row.methods[0], path_of(world, row.route), body, "application/json", headers=headers
                )
                if fault := fault_of(answer):
                    problems[f"{field} = {value!r:.40}"] = fault
    assert problems == {}


@pytest.mark.parametrize("row", READING, ids=str)
def test_a_malformed_query(world: World, row: Row):
    headers = world.headers["administrator"]
    path = path_of(world, row.route).partition("?")[0]
    problems = {}
    for name in PARAMETERS:
        for value in QUERIES:
            answer = CLIENT.get(f"{path}?user_id=user-of-home&{name}={value}", headers=headers)
            if fault := fault_of(answer):
                problems[f"{name}={value[:40]}"] = fault
    assert problems == {}


@pytest.mark.parametrize("row", [row for row in ROWS if "<" in row.route], ids=str)
@pytest.mark.parametrize(
    "name", ["%00", "%ff", "%ed%a0%80", "a%2Fb", "%2e%2e", "x" * 3_000, "'", "%25", "%0a"]
)
def test_a_malformed_id_is_not_there(world: World, row: Row, name: str):
    start, _, rest = row.route.partition("<")
    path = f"/{start}{name}{rest.partition('>')[2]}?user_id=user-of-home"
    body = b'{"reason": "x"}' if "POST" in row.methods and not row.route.endswith("/retry") else b""
    headers = world.headers["administrator"]
    answer = CLIENT.generic(row.methods[0], path, body, "application/json", headers=headers)
    if row.route.endswith("/close"):  # reads no reason
        assert answer.status_code in (400, 404)
        return
    assert (answer.status_code, answer.content) == (404, b'{"detail":"Not found."}')


@pytest.mark.parametrize(
    "credential",
    [
        {"X-API-Key": "\xff"},
        {"X-API-Key": "x" * 100_000},
        {"X-API-Key": "a\u0000b"},
        {"Authorization": "Bearer " + "x" * 100_000},
        {"Authorization": "Bearer \xff.\xff.\xff"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic YTpi"},
        {"Authorization": "Bearer " + ".".join(["e30"] * 3)},
        {"X-Client-ID": "\u0000"},
    ],
    ids=lambda headers: str(headers)[:40],
)
def test_a_malformed_credential_is_none(world: World, credential: dict[str, str]):
    answer = CLIENT.get("/v1/skills", headers=credential)
    nobody = CLIENT.get("/v1/skills")
    assert (answer.status_code, answer.content) == (401, nobody.content)


@pytest.mark.parametrize("path", UNKNOWN_PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path_is_the_404_of_a_missing_row(world: World, path: str, method: str):
    answer = CLIENT.generic(method, path, headers=world.headers["administrator"])
    assert (answer.status_code, answer.content) == (404, b'{"detail":"Not found."}')
    assert answer["Content-Type"] == "application/json"


@pytest.mark.parametrize("path", ["/v1/skills", "/health", "/nowhere"])
def test_a_host_that_is_not_served_is_400(path: str, settings):
    answer = CLIENT.get(path, headers={"Host": "elsewhere.example"})
    assert (answer.status_code, answer.content) == (400, b'{"detail":"Bad request."}')
    assert answer["Content-Type"] == "application/json"


def test_a_page_of_the_admin_is_refused_with_a_page(settings):
    answer = CLIENT.get("/admin/", headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("row", WRITING, ids=str)
def test_a_body_that_is_too_large(world: World, row: Row, settings):
    settings.MIRIX_MAX_REQUEST_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    body = json.dumps({"messages": "x" * 200})
    answer = CLIENT.generic(
        row.methods[0],
        path_of(world, row.route),
        body,
        "application/json",
        headers=world.headers["administrator"],
    )
    assert answer.status_code == 413
    assert answer.json() == {"detail": "The request body is larger than 100 bytes."}


def test_a_session_without_the_token_of_a_form_is_no_matter_to_the_api(world: World):
    """The API asks for no CSRF token, since no cookie opens it."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies["sessionid"] = world.cookies["superuser"]
    answer = strict.post("/users/create_or_get", {}, "application/json")
    assert answer.status_code == 401
    with_key = strict.post(
        "/users/create_or_get", {"user_id": "x"}, "application/json", headers=world.headers["write key"]
    )
    assert with_key.status_code == 201
