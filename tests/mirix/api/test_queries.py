"""What a list is asked for is answered or refused by name; nothing is left out silently."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from urllib.parse import parse_qs, urlsplit

import pytest
from rest_framework.pagination import CursorPagination as Walked

from tests.access.routes import registered
from tests.factories import make_session, make_skill

pytestmark = pytest.mark.django_db
LISTS = ["sessions", "sessions/s-1/turns", "intake", "experiences", "runs", "proposals", "skills"]
NO_CURSOR = {"cursor": ["This is no cursor of this list; take it from `next` or `previous` of a page."]}


@pytest.fixture(autouse=True)
def session(owner):
    return make_session(owner, [{"role": "user", "content": str(n)} for n in range(3)], session_id="s-1")


def path(name: str) -> str:
    return f"/v1/{name}"


def cursor(text: str) -> str:
    return b64encode(text.encode()).decode()


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    "limit", ["0", "-1", "x", "", "501", "100000", "1" * 5_000, "1.5", "²", "1_0", "٣", "+3", "3 "]
)
def test_a_limit_out_of_range_is_refused_with_the_range(api, name, limit):
    most = 500 if name.endswith("turns") else 200
    answer = api.get(path(name), {"user_id": "alice", "limit": limit})
    assert (answer.status_code, answer.json()) == (
        400,
        {"limit": [f"Must be a whole number from 1 to {most}."]},
    )
    assert api.get(path(name), {"user_id": "alice", "limit": most}).status_code == 200


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    "bad",
    [
        *("", "zzz", "AAAA", "é"),
        *(cursor(text) for text in ("x=1", "o=-1", "r=x", "p=x", "p=x&y=1", "o=1", "l=x", "o=1&l=x")),
    ],
)
def test_a_cursor_that_is_none_is_refused(api, name, bad):
    answer = api.get(path(name), {"user_id": "alice", "cursor": bad})
    assert (answer.status_code, answer.json()) == (400, NO_CURSOR)


def own(name: str, text: str) -> str:
    """Return a cursor that names its list rightly."""
    return cursor(f"{text}&l={hashlib.sha256(path(name).encode()).hexdigest()[:16]}")


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("bad", ["o=-1", "o=x", "p=x", "r=x&p=x", "l=1", "y=1"])
def test_a_cursor_of_the_list_with_a_bad_place_is_refused(api, name, bad):
    answer = api.get(path(name), {"user_id": "alice", "cursor": own(name, bad)})
    assert (answer.status_code, answer.json()) == (400, NO_CURSOR)


def lists() -> list[str]:
    """Return the routes of all lists that are walked by cursors."""
    return [
        route.path
        for route in registered()
        if issubclass(getattr(getattr(route.view, "cls", None), "pagination_class", None) or object, Walked)
        and getattr(route.view, "actions", {"get": "list"}).get("get") == "list"
        and not route.path.endswith("SKILL.md")
    ]


def test_a_cursor_of_one_list_is_refused_by_every_other(api, owner):
    skill = make_skill(owner)
    names = {"id:pk": skill.pk, "id:session_id": "s-1"}
    paths = {"/" + re.sub(r"<([^>]+)>", lambda found: names[found[1]], route) for route in lists()}
    assert {path(name) for name in LISTS} < paths
    for one in paths:
        taken = cursor(f"o=1&l={hashlib.sha256(one.encode()).hexdigest()[:16]}")
        for other in paths:
            more = {} if other.endswith("revisions") else {"user_id": "alice"}
            answer = api.get(other, more | {"cursor": taken})
            if other == one:
                assert answer.status_code == 200
            else:
                assert (answer.status_code, answer.json()) == (400, NO_CURSOR)


def test_a_cursor_of_a_sessions_turns_is_refused_by_other_lists(api, owner):
    make_session(owner, [{"role": "user", "content": "hello"}], session_id="s-2")
    page = api.get(path("sessions/s-1/turns"), {"user_id": "alice", "limit": 1}).json()
    taken = parse_qs(urlsplit(page["next"]).query)["cursor"][0]
    for name in ["sessions/s-2/turns", *LISTS]:
        answer = api.get(path(name), {"user_id": "alice", "cursor": taken})
        if name == "sessions/s-1/turns":
            assert answer.status_code == 200
        else:
            assert (answer.status_code, answer.json()) == (400, NO_CURSOR)


def test_the_cursors_of_a_list_lead_through_it_and_back(api):
    first = api.get(path("sessions/s-1/turns"), {"user_id": "alice", "limit": 2}).json()
    second = api.get(first["next"]).json()
    assert [turn["seq"] for turn in first["results"] + second["results"]] == [1, 2, 3]
    assert api.get(second["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize("name", LISTS)
def test_a_parameter_that_a_list_does_not_know_is_refused_by_name(api, name):
    answer = api.get(path(name), {"user_id": "alice", "limt": "5", "sttus": "x"})
    expected = {"limt": ["Unknown query parameter."], "sttus": ["Unknown query parameter."]}
    assert (answer.status_code, answer.json()) == (400, expected)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("experiences", "verified"),
        ("experiences", "quarantined"),
        ("sessions/s-1/turns", "is_error"),
        ("sessions/s-1/turns", "truncated"),
    ],
)
def test_true_or_false_is_no_third_thing(api, name, field):
    answer = api.get(path(name), {"user_id": "alice", field: "maybe"})
    assert (answer.status_code, answer.json()) == (400, {field: ["Must be true or false."]})
    for value in ("true", "True", "1", "false", "0"):
        assert api.get(path(name), {"user_id": "alice", field: value}).status_code == 200


def test_true_and_false_select(api):
    def count(value: str) -> int:
        rows = api.get(path("sessions/s-1/turns"), {"user_id": "alice", "truncated": value}).json()
        return len(rows["results"])

    assert (count("false"), count("true")) == (3, 0)


@pytest.mark.parametrize("name", ["intake", "experiences", "runs", "proposals"])
def test_a_time_that_is_none_is_refused_and_any_other_selects(api, name):
    for field in ("created_after", "created_before"):
        for bad in ("yesterday", "2026-02-30", "2026-13-01T00:00:00Z", "10000-01-01"):
            answer = api.get(path(name), {"user_id": "alice", field: bad})
            assert (answer.status_code, answer.json()) == (400, {field: ["Enter a valid date/time."]})
        for good in ("2026-02-28T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"):
            assert api.get(path(name), {"user_id": "alice", field: good}).status_code == 200


@pytest.mark.parametrize("name", ["sessions", "intake", "experiences", "runs", "proposals", "skills"])
@pytest.mark.parametrize("bound", ["created_after", "created_before"])
@pytest.mark.parametrize(
    "moment",
    [
        *("2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00-23:59"),
        *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
    ],
)
def test_a_moment_may_have_any_offset(api, name, bound, moment):
    """PostgreSQL refuses offsets of 16 hours and more, which ISO 8601 allows."""
    answer = api.get(path(name), {"user_id": "alice", bound: moment})
    assert answer.status_code == 200, answer.json()
