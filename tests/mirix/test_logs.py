"""What stands in the log: no credentials, and one line for what a caller did wrong."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DataError, IntegrityError, connection, transaction
from django.test import Client
from gunicorn.config import Config

from mirix.api import users
from mirix.faults import trace_of, words_of
from mirix.logs import JsonFormatter, LineFormatter, about
from mirix.refusals import Log
from mirix.tenants.models import Client as Application

KEY = "mx_" + "a1-_" * 8
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.fixture
def lines() -> Iterator[Callable[[], list[str]]]:
    """Everything that goes to standard error, without the time."""
    root = logging.getLogger()
    formatter = next(h.formatter for h in root.handlers if isinstance(h.formatter, LineFormatter))
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root.addHandler(handler)
    yield lambda: [line[24:] if line[:2] == "20" else line for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)


@pytest.mark.django_db
def test_a_page_that_is_refused_is_one_line(lines):
    browser = Client()
    outsider = User.objects.create_user("outsider", is_staff=True)
    browser.force_login(outsider, backend="django.contrib.auth.backends.ModelBackend")

    assert browser.get("/admin/skills/skill/").status_code == 403
    assert lines() == ["WARNING django.request Forbidden (Permission denied): /admin/skills/skill/"]


def test_a_host_that_is_not_served_is_a_warning(lines):
    assert Client().get("/health", headers={"Host": "elsewhere.example"}).status_code == 400
    why = "Invalid HTTP_HOST header: 'elsewhere.example'. You may need to add 'elsewhere.example'"
    assert lines() == [f"WARNING django.security.DisallowedHost {why} to ALLOWED_HOSTS."]


@pytest.mark.parametrize("credential", [KEY, TOKEN])
def test_a_credential_in_a_path_or_a_host_is_hidden(lines, credential):
    client = Client()
    client.get(f"/nowhere/{credential}")
    client.get("/health", headers={"Host": f"{credential}.example"})

    assert lines()[0] == "WARNING django.request Not Found: /nowhere/…"
    assert credential not in "\n".join(lines())


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/nowhere", "/nowhere"),
        ("/users/Mr/Canary/memories", "/users/…"),
        ("/Mr Canary", "/…"),
        ("/0041791234567", "/…"),
    ],
)
def test_of_a_path_that_leads_nowhere_the_beginning_is_told(lines, path, told):
    assert Client().get(path).status_code == 404
    assert lines() == [f"WARNING django.request Not Found: {told}"]


@pytest.mark.django_db
def test_a_fault_of_ours_keeps_its_traceback_without_credentials(lines, api, monkeypatch):
    def fail(**_: object) -> None:
        raise RuntimeError(f"no such key: {KEY}")

    monkeypatch.setattr(users, "find_owner_of", fail)
    assert api.post("/users/create_or_get", {}, format="json").status_code == 500

    said = lines()
    assert said[:2] == [
        "ERROR mirix.api.errors unhandled error in /users/create_or_get",
        "Traceback (most recent call last):",
    ]
    assert "RuntimeError: no such key: ********************" in said
    assert KEY not in "\n".join(said)


def test_others_get_the_record_as_it_is():
    record = logging.LogRecord("x", logging.ERROR, "", 0, "refused", (), (ValueError, ValueError("x"), None))
    record.status_code = 403

    assert LineFormatter("%(levelname)s %(message)s").format(record) == "WARNING refused"
    assert (record.levelname, record.exc_info[0]) == ("ERROR", ValueError)


def test_what_the_web_server_says_of_a_broken_request_holds_no_credential(capsys):
    log = Log(Config())
    log.warning("Invalid request from ip=127.0.0.1: Invalid HTTP request line: 'GET /%s'", KEY)

    assert capsys.readouterr().err.endswith("Invalid HTTP request line: 'GET /********************'\n")


@pytest.fixture
def objects() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Everything that goes to standard error where it is for machines."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root, requests = logging.getLogger(), logging.getLogger("mirix.request_log")
    root.addHandler(handler)
    level = requests.level
    requests.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    requests.setLevel(level)
    root.removeHandler(handler)


def test_a_line_for_machines_is_one_object(objects):
    with about(run_id="run-1"), about(request_id="req-1"):
        logging.getLogger("mirix.x").warning("%d skills\nof “%s”", 2, KEY)
    logging.getLogger("mirix.x").warning("later")

    first, second = objects()
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    assert first == {
        "level": "WARNING",
        "logger": "mirix.x",
        "message": "2 skills\nof “********************”",
        "run_id": "run-1",
        "request_id": "req-1",
    }
    assert second.keys() == {"time", "level", "logger", "message"}


def test_the_line_of_what_a_caller_did_wrong_has_the_id_of_the_request(objects, api, settings):
    settings.MIRIX_LOG_REQUESTS = False
    answers = [
        api.get("/nowhere"),
        api.get("/memory/search", {"query": "x", "limit": "Mr Canary"}),
        api.get("/v1/sessions/Canary?user_id=Canary"),
        api.post("/memory/add", "{", content_type="application/json"),
        Client().get("/v1/sessions"),
        Client().get("/health", headers={"Host": "elsewhere.example"}),
    ]
    assert [answer.status_code for answer in answers] == [404, 400, 404, 400, 401, 400]
    assert [line["request_id"] for line in objects()] == [answer["X-Request-ID"] for answer in answers]
    assert "Canary" not in str(objects())


def test_in_detail_we_alone_speak():
    """The client of models tells at DEBUG what it sends."""
    script = """
import django, logging
django.setup()
names = ("mirix.x", "conversations", "skills.y", "openai._base_client", "httpcore", "django.db.backends")
print(*(name for name in names if logging.getLogger(name).isEnabledFor(logging.DEBUG)))
"""
    environment = os.environ | {"MIRIX_LOG_LEVEL": "DEBUG"}
    said = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    assert said.stdout.split() == ["mirix.x", "conversations", "skills.y"]


def test_each_request_has_an_id_in_its_answer_and_all_its_lines(objects, api, settings, monkeypatch):
    settings.MIRIX_LOG_REQUESTS = True
    monkeypatch.setattr(users, "find_owner_of", fail_with(RuntimeError("broken")))
    answers = [api.post("/users/create_or_get", {"user_id": "Mr Canary"}, format="json") for _ in range(2)]

    ids = [answer["X-Request-ID"] for answer in answers]
    assert len(set(ids)) == 2
    for request_id in ids:
        fault, answer, line = [each for each in objects() if each.get("request_id") == request_id]
        assert answer["message"] == "Internal Server Error: /users/create_or_get"
        assert (fault["message"], fault["error"]) == (
            "unhandled error in /users/create_or_get",
            "RuntimeError",
        )
        assert fault["traceback"].endswith("RuntimeError: broken")
        assert (line["method"], line["route"], line["status"]) == ("POST", "/users/create_or_get", 500)
        assert line["caller"].startswith("key:")
        assert line["organization"].startswith("org-")
        assert 0 < line["seconds"] < 60
    assert "Canary" not in str(objects())


def test_requests_leave_no_line_unless_asked_for(objects, api):
    api.get("/v1/skills")
    assert objects() == []


def test_an_id_is_taken_from_a_proxy_of_ours_alone(client, settings):
    given = {"X-Request-ID": "trace-1"}
    assert client.get("/health", headers=given)["X-Request-ID"].startswith("req-")
    settings.MIRIX_TRUSTED_PROXIES = 1
    assert client.get("/health", headers=given)["X-Request-ID"] == "trace-1"
    for bad in ("a b", "x" * 129, "\xe9", ""):
        assert client.get("/health", headers={"X-Request-ID": bad})["X-Request-ID"].startswith("req-")


def test_a_path_with_ids_of_callers_is_the_route(lines, objects, api, settings):
    settings.MIRIX_LOG_REQUESTS = True
    assert api.get("/v1/sessions/canary-session/turns").status_code == 404
    assert api.get("/memory/search?query=canary&user_id=canary").status_code == 200

    assert "WARNING django.request Not Found: /v1/sessions/<id:session_id>/turns" in lines()
    assert {line["route"] for line in objects() if "route" in line} == {
        "/v1/sessions/<id:session_id>/turns",
        "/memory/search",
    }
    assert "canary" not in str(lines()) + str(objects())


@pytest.mark.django_db
def test_what_the_database_refuses_is_told_without_the_row(lines, client_row):
    words = "the words of a user"
    try:
        with transaction.atomic():
            Application.objects.create(organization=client_row.organization, name=client_row.name)
    except IntegrityError:
        logging.getLogger("mirix.x").exception("it failed")
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT %s::integer", [words])
    except DataError:
        logging.getLogger("mirix.x").exception("it failed")

    said = "\n".join(lines())
    assert 'IntegrityError: duplicate key value violates unique constraint "' in said
    assert "DataError: SQL state 22P02" in said
    assert client_row.name not in said
    assert words not in said
    assert "DETAIL" not in said


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("invalid literal: 'a secret'"), "ValueError"),
        (KeyError("alice"), "KeyError"),
        (UnicodeEncodeError("utf-8", "alice", 0, 1, "no"), "UnicodeEncodeError"),
        (RuntimeError(), "RuntimeError"),
        (RuntimeError("we say so"), "RuntimeError: we say so"),
        (RuntimeError("x" * 600), "RuntimeError: " + "x" * 499 + "…"),
    ],
)
def test_the_words_of_an_exception_are_kept_where_they_quote_nobody(error: Exception, told: str):
    assert words_of(error) == told


def test_a_traceback_tells_what_led_to_it_in_the_order_of_python():
    def outer() -> None:
        try:
            int("alice")
        except ValueError as error:
            raise RuntimeError("could not read it") from error

    with pytest.raises(RuntimeError) as caught:
        outer()
    said = trace_of(caught.value).splitlines()
    assert [line for line in said if not line.startswith(" ")] == [
        "Traceback (most recent call last):",
        "ValueError",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        "Traceback (most recent call last):",
        "RuntimeError: could not read it",
    ]
    assert 'int("alice")' in "\n".join(said)  # a line of code, which holds no value of anybody


def test_a_circle_of_causes_ends():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__context__, second.__context__ = second, first
    assert trace_of(first).splitlines()[-1] == "RuntimeError: a"


def test_a_job_is_told_without_its_arguments(lines):
    logging.getLogger("procrastinate.worker").error(
        "Job conversations.replay[12](actor={'name': 'rita (x)'}) ended with status: Error"
    )
    assert lines() == ["ERROR procrastinate.worker Job conversations.replay[12] ended with status: Error"]


def test_the_web_server_writes_as_the_setting_says(capsys, monkeypatch):
    monkeypatch.setenv("MIRIX_LOG_FORMAT", "json")
    Log(Config()).warning("Invalid request of %s", KEY)
    assert json.loads(capsys.readouterr().err)["message"] == "Invalid request of ********************"


def fail_with(error: Exception) -> Callable[..., None]:
    def fail(**_: object) -> None:
        raise error

    return fail
