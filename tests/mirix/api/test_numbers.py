"""Numbers in requests are as JSON writes them; what only Python would read is refused by name."""

from __future__ import annotations

from io import StringIO
from urllib.parse import urlencode

import pytest
import yaml
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.serializers import ValidationError

from mirix.api.numbers import NumberField, WholeNumberField

ODD = [
    "1_0",
    "٣",
    "३",
    "²",
    "+3",
    " 3",
    "3 ",
    "3\u00a0",
    "0x3",
    "3.",
    "1e",
    "--3",
    "three",
    "true",
    "nan",
    "inf",
]


@pytest.mark.parametrize("text", [*ODD, "3.0", "1e1", ".5", "9" * 5_000])
def test_what_is_no_whole_number(text):
    with pytest.raises(ValidationError):
        WholeNumberField().run_validation(text)


@pytest.mark.parametrize("text", [*ODD, ".5", "1_0.5", "Infinity"])
def test_what_is_no_number(text):
    with pytest.raises(ValidationError, match="A valid number is required"):
        NumberField().run_validation(text)


@pytest.mark.parametrize("value", [True, False, 1.5, float("inf"), [], {}])
def test_what_is_no_whole_number_in_json(value):
    with pytest.raises(ValidationError):
        WholeNumberField().run_validation(value)


@given(st.integers())
def test_every_whole_number_is_taken(number):
    assert WholeNumberField().run_validation(number) == number
    assert WholeNumberField().run_validation(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_taken(number):
    assert NumberField().run_validation(number) == number
    assert NumberField().run_validation(str(number)) == number


def numeric() -> list[tuple[str, str, str]]:
    """Return method, path and name of every number among the query parameters of the API."""
    out = StringIO()
    call_command("spectacular", stdout=out)
    return [
        (method, path, parameter["name"])
        for path, operations in yaml.safe_load(out.getvalue())["paths"].items()
        for method, operation in operations.items()
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter["schema"].get("type") in ("integer", "number")
    ]


@pytest.mark.django_db
def test_every_route_refuses_them_by_name(api, owner):
    found = [case for case in numeric() if "{" not in case[1]]
    assert {"limit", "token_budget", "similarity_threshold", "wait"} <= {name for _, _, name in found}
    for method, path, name in found:
        for text in ODD:
            address = f"{path}?{urlencode({'user_id': 'alice', name: text})}"
            answer = api.generic(method.upper(), address, "{}", content_type="application/json")
            assert (answer.status_code, list(answer.json())) == (400, [name]), (path, text)
