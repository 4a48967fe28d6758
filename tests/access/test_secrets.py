"""A credential is seen by nobody but its holder: not in answers, logs, rows, reports of errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client
from django.views.debug import ExceptionReporter, get_exception_reporter_class
from rest_framework.views import APIView

from mirix.reports import HIDDEN
from mirix.tenants.audit import Actor
from mirix.tenants.keys import create_api_key, rotate_api_key
from mirix.tenants.models import ApiKey
from mirix.tenants.models import Client as ClientRow
from tests.access.test_api import ALL, CLIENT, send
from tests.access.world import PASSWORD, World

pytestmark = pytest.mark.django_db
WRONG = "mx_" + "a-wrong-key-of-the-right-length_0123456789"


@pytest.fixture
def secrets(world: World) -> dict[str, str]:
    """Credentials as they are given out, by who holds them; the world's callers send them."""
    client = world.home.rows["tenants.client"]
    assert isinstance(client, ClientRow)
    _, old = create_api_key(client=client, permission="admin", actor=Actor.operator())
    row = ApiKey.objects.latest("created_at")
    _, new = rotate_api_key(api_key=row, actor=Actor.operator())
    token = world.headers["administrator"]["Authorization"].removeprefix("Bearer ")
    return {"old key": old, "new key": new, "wrong key": WRONG, "token": token}


def headers_of(secrets: dict[str, str]) -> Iterator[dict[str, str]]:
    for name, secret in secrets.items():
        yield {"Authorization": f"Bearer {secret}"} if name == "token" else {"X-API-Key": secret}


def stored() -> str:
    """Return every row of every table as text."""
    tables = connection.introspection.table_names()
    rows = " UNION ALL ".join(f'SELECT t::text FROM "{table}" t' for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(rows)
        return "\n".join(text for (text,) in cursor.fetchall())


def leaked(secrets: dict[str, str], text: str) -> list[str]:
    return [name for name, secret in secrets.items() if secret in text]


def test_no_route_shows_logs_or_stores_a_credential(world: World, secrets, caplog):
    caplog.set_level(logging.DEBUG)
    connection.force_debug_cursor = True
    shown = []
    try:
        for row in ALL:
            if row.route in ("schema", "docs", "auth/token"):
                continue  # of no caller; and tokens are what the last one is for
            for headers in headers_of(secrets):
                world.headers["the holder"] = headers
                for method in row.methods:
                    answer = send(world, "the holder", method, row.route)
                    shown.append(f"{answer.headers} {answer.content.decode()}")
    finally:
        connection.force_debug_cursor = False
        del world.headers["the holder"]
    assert "/v1/skills" in caplog.text
    for text in (*shown, caplog.text, stored()):
        assert leaked(secrets, text) == []


def test_no_password_and_no_token_is_logged_or_stored_at_a_login(world: World, caplog):
    caplog.set_level(logging.DEBUG)
    wrong = {"username": "operator-of-home", "password": f"{PASSWORD}, but wrong"}
    right = send(world, "nobody", "POST", "auth/token")
    for login in (right, CLIENT.post("/auth/token", wrong, "application/json")):
        given = {name: value for name, value in login.json().items() if name in ("access", "refresh")}
        assert leaked(given | {"password": PASSWORD}, caplog.text + stored()) == []
    renewed = CLIENT.post("/auth/token/refresh", {"refresh": "x"}, "application/json")
    assert renewed.status_code == 401


@pytest.mark.parametrize("debug", [False, True], ids=["production", "DEBUG"])
@pytest.mark.parametrize("where", ["in the view", "in the framework"])
def test_a_fault_shows_and_logs_no_credential(
    world: World, secrets, settings, monkeypatch, caplog, debug, where
):
    caplog.set_level(logging.DEBUG)
    settings.DEBUG = debug

    def fail(*arguments: object, **named: object) -> None:
        innocent = list(secrets.values())  # a variable of the frame that fails
        raise RuntimeError(f"a fault, with {len(innocent)} secrets")

    monkeypatch.setattr("skills.api.skills.skills_of", fail)
    if where == "in the framework":
        monkeypatch.setattr(APIView, "handle_exception", lambda self, error: (_ for _ in ()).throw(error))
    for headers in headers_of({name: secret for name, secret in secrets.items() if name != "wrong key"}):
        answer = CLIENT.get("/v1/skills", headers=headers)
        assert answer.status_code == 500
        assert leaked(secrets, answer.content.decode()) == []
        page = debug and where == "in the framework"
        assert answer["Content-Type"].startswith("text/html" if page else "application/json")
        if page:
            assert "a fault" in answer.content.decode(), "it is the debug page"
            assert HIDDEN in answer.content.decode()
    assert "a fault" in caplog.text
    assert leaked(secrets, caplog.text) == []


@pytest.mark.parametrize("debug", [False, True], ids=["production", "DEBUG"])
def test_a_fault_in_authentication_shows_and_logs_no_key(
    world: World, secrets, settings, monkeypatch, caplog, debug
):
    settings.DEBUG = debug
    monkeypatch.setattr("mirix.tenants.selectors.hash_key", lambda key: 1 / 0)
    monkeypatch.setattr(APIView, "handle_exception", lambda self, error: (_ for _ in ()).throw(error))

    answer = CLIENT.get("/v1/skills", headers={"X-API-Key": secrets["old key"]})

    assert answer.status_code == 500
    assert leaked(secrets, answer.content.decode() + caplog.text) == []
    assert ("ZeroDivisionError" in answer.content.decode()) == debug


def test_a_report_holds_no_key_wherever_it_stood(world: World, secrets, rf):
    """The text that would be mailed, with a key in a variable, in a dict, in the message and in a header."""
    request = rf.get("/v1/skills", headers={"X-API-Key": secrets["new key"]})
    innocent = {"a": [secrets["old key"]]}
    try:
        raise RuntimeError(f"bad key {innocent}")
    except RuntimeError as error:
        reporter = get_exception_reporter_class(request)(request, type(error), error, error.__traceback__)
        texts = [reporter.get_traceback_text(), reporter.get_traceback_html()]
        plain = ExceptionReporter(request, type(error), error, error.__traceback__).get_traceback_html()
    assert leaked(secrets, plain) != [], "without the filter it would"
    for text in texts:
        assert "RuntimeError" in text
        assert leaked(secrets, text) == []


def test_the_history_and_the_trail_in_the_admin_name_keys_by_their_prefix(world: World, secrets):
    browser = Client()
    browser.cookies["sessionid"] = world.cookies["administrator"]
    key = ApiKey.objects.filter(replaced_by__isnull=False).get()
    pages = [
        browser.get(f"/admin/tenants/{path}").content.decode()
        for path in ("apikey/", f"apikey/{key.pk}/change/", f"apikey/{key.pk}/history/", "auditevent/")
    ]
    for page in pages:
        assert leaked(secrets, page) == []
        assert key.secret_hash not in page
    assert key.prefix in pages[0]
