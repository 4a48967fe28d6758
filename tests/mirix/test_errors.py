"""The status table of the contract: JSON everywhere, whatever the caller sends."""

from __future__ import annotations

import json

import pytest
from django.db import OperationalError
from rest_framework.test import APIClient

from mirix.api import users

pytestmark = pytest.mark.django_db
URL = "/users/create_or_get"


def post_raw(api: APIClient, body: bytes, content_type: str = "application/json"):
    return api.generic("POST", URL, body, content_type=content_type)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"{", "The body is not valid JSON: Expecting property name"),
        (b"\xff\xfe", "The body is not UTF-8: invalid start byte at byte 0."),
        (b'{"user_id": NaN}', "The body is not valid JSON: NaN is not JSON."),
        (b'{"a": 1, "a": 2}', "The body is not valid JSON: the key 'a' stands twice in one object."),
        (b"[" * 100_000 + b"]" * 100_000, "The JSON is nested too deeply."),
        (b"[" * 5_000 + b"]" * 5_000, "The JSON is nested too deeply."),
        (b'{"a": ' * 501 + b"1" + b"}" * 501, "The JSON is nested too deeply."),
    ],
    ids=["broken", "not utf-8", "nan", "key twice", "deep", "5,000 deep", "a level too deep"],
)
def test_a_malformed_body_is_400_with_the_reason(api, body, detail):
    answer = post_raw(api, body)

    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(detail)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"3", b"null"])
def test_a_body_that_is_no_object_is_400(api, body):
    answer = post_raw(api, body)

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/json"


def test_another_content_type_is_415(api):
    assert post_raw(api, b"user_id=a", "application/x-www-form-urlencoded").status_code == 415


def test_a_body_over_the_limit_is_413(api, settings):
    settings.MIRIX_MAX_REQUEST_BYTES = settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    answer = post_raw(api, json.dumps({"user_id": "x" * 100}).encode())

    assert answer.status_code == 413
    assert answer.json() == {"detail": "The request body is larger than 100 bytes."}


@pytest.mark.parametrize("path", ["/memory/add", "/memory/add_sync"])
def test_a_body_of_100_mb_is_413(api, path):
    answer = api.generic("POST", path, b" " * 100_000_000, content_type="application/json")

    assert answer.status_code == 413
    assert answer.json() == {"detail": "The request body is larger than 20000000 bytes."}


def test_a_wrong_method_is_405_in_json(api):
    answer = api.get(URL)

    assert answer.status_code == 405
    assert answer.json() == {"detail": 'Method "GET" not allowed.'}


@pytest.mark.parametrize("path", ["/nowhere", "/memory/nothing", "/v1/", "/users/create_or_get/"])
def test_an_unknown_path_is_404_in_json(client, path):
    answer = client.get(path)

    assert answer.status_code == 404
    assert answer.content == b'{"detail":"Not found."}'


def test_no_answer_changes_the_next_one(client, api):
    assert client.get("/docs?format=zzz").status_code == 404

    for answer in (client.get("/nowhere"), api.get("/v1/skills/nowhere")):
        assert answer.content == b'{"detail":"Not found."}'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/health", None),
        ("/", None),
        ("/docs", None),
        ("/schema", None),
        ("/v1/skills", None),
        ("/memory/search", None),
        ("/auth/token", {}),
        ("/users/create_or_get", {}),
    ],
)
def test_too_many_parameters_are_400(api, path, body):
    query = "&".join(f"p{number}=1" for number in range(1_001))
    answer = api.get(f"{path}?{query}") if body is None else api.post(f"{path}?{query}", body, format="json")

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/json"
    assert answer.content == b'{"detail":"The query has too many parameters."}'


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/docs", "text/html"),
        ("/docs", "*/*"),
        ("/schema", "application/vnd.oai.openapi"),
        ("/schema", "*/*"),
    ],
)
def test_pages_of_the_api_refuse_in_json(client, path, accept):
    missing = client.get(f"{path}?format=zzz", headers={"Accept": accept})
    refused = client.post(path, headers={"Accept": accept})

    assert (missing.status_code, missing.content) == (404, b'{"detail":"Not found."}')
    assert refused.status_code == 405
    assert refused.content == b'{"detail":"Method \\"POST\\" not allowed."}'
    for answer in (missing, refused):
        assert answer["Content-Type"] == "application/json"


def test_a_database_that_is_down_is_503_with_retry_after(api, monkeypatch):
    def fail(**_: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(users, "find_owner_of", fail)
    answer = api.post(URL, {}, format="json")

    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert answer.json() == {"detail": "The database is not available; try again shortly."}


def test_a_fault_of_ours_is_500_without_its_text_and_is_logged(api, monkeypatch, caplog):
    def fail(**_: object) -> None:
        raise RuntimeError("secret inner state")

    monkeypatch.setattr(users, "find_owner_of", fail)
    answer = api.post(URL, {}, format="json")

    assert answer.status_code == 500
    assert answer.json() == {"detail": "Internal error; it has been logged."}
    assert "secret inner state" in caplog.text


def test_health_needs_no_key(client):
    assert client.get("/health").json() == {
        "status": "healthy",
        "service": "mirix-api",
        "skill_trigger_session_threshold": 5,
    }


def test_the_schema_and_its_page_are_served_without_outside_addresses(client):
    assert client.get("/schema").status_code == 200
    page = client.get("/docs")
    assert page.status_code == 200
    assert "https://" not in page.content.decode().replace("https://www.w3.org", "")
