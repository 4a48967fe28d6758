"""GET /schema: what the OpenAPI document says of credentials, without a warning of its generator."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
import yaml
from django.core.management import call_command

OPEN = {"/health", "/ready", "/auth/token", "/auth/token/refresh"}
ANY = [{"ApiKey": []}, {"Token": []}, {"ClientId": []}]
FOR_PEOPLE = [{"Token": []}]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    document: dict[str, Any] = yaml.safe_load(out.getvalue())
    return document


def test_it_knows_three_ways_to_say_who_calls(schema):
    schemes = schema["components"]["securitySchemes"]

    assert {name: (scheme["type"], scheme.get("name")) for name, scheme in schemes.items()} == {
        "ApiKey": ("apiKey", "X-API-Key"),
        "Token": ("http", None),
        "ClientId": ("apiKey", "X-Client-ID"),
    }
    assert (schemes["Token"]["scheme"], schemes["Token"]["bearerFormat"]) == ("bearer", "JWT")


def test_each_route_says_which_of_them_it_takes(schema):
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            if path in OPEN:
                assert operation.get("security", [{}]) == [{}], path
            elif path.endswith(("/approve", "/reject")):
                assert operation["security"] == FOR_PEOPLE, path
            else:
                assert operation["security"] == ANY, path


def test_it_is_served_to_everybody(client):
    assert client.get("/schema").status_code == 200
