"""What stands in the log: no credentials, and one line for what a caller did wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.test import Client
from gunicorn.config import Config

from mirix.api import users
from mirix.logs import LineFormatter
from mirix.refusals import Log

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

    assert lines()[0] == "WARNING django.request Not Found: /nowhere/********************"
    assert credential not in "\n".join(lines())


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
