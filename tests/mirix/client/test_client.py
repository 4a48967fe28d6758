"""The Python client and a scripted server: what it sends, tries again, and says went wrong."""

from __future__ import annotations

import dataclasses
import http.client
import json
import logging
import os
import pickle
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from inspect import signature
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirix import client as package
from mirix.client import (
    BadRequest,
    Conflict,
    Forbidden,
    Mirix,
    MirixError,
    NotFound,
    ServerError,
    Throttled,
    TooLarge,
    Unauthorized,
    Unreachable,
    transport,
)
from mirix.client import client as calls
from mirix.client.errors import error_of
from tests.mirix.client.scripted import Answer, Scripted, said, scripted
from tests.processes import eventually

KEY = "mirix_0123456789abcdef"
MESSAGES = [{"role": "user", "content": "Refund order 4711."}]
HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted() as script:
        yield script


@pytest.fixture
def mirix(server: Scripted) -> Iterator[Mirix]:
    with Mirix(server.url, KEY) as client:
        yield client


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """What it would have slept, in seconds."""
    slept: list[float] = []
    monkeypatch.setattr(transport, "sleep", slept.append)
    monkeypatch.setattr(calls, "sleep", slept.append)
    return slept


def query_of(server: Scripted) -> dict[str, str]:
    target = urlsplit(server.asked[-1].target)
    return {name: value for name, (value,) in parse_qs(target.query, keep_blank_values=True).items()}


# What it sends


def test_only_what_is_given_is_sent(mirix: Mirix, server: Scripted):
    mirix.search("refund")
    assert query_of(server) == {"query": "refund"}
    mirix.search_all_users()
    assert query_of(server) == {"query": ""}
    mirix.add_sync(MESSAGES)
    assert server.asked[-1].json == {"messages": MESSAGES}
    mirix.close_session("s-1")
    mirix.auto_dream()
    assert [asked.json for asked in server.asked[-2:]] == [{}, {}]


def test_a_search_sends_all_it_is_given(mirix: Mirix, server: Scripted):
    mirix.search(
        "wie geht’s? a&b=c",
        user_id="desk 7",
        memory_type="all",
        search_method="bm25",
        search_field="name",
        limit=3,
        filter_tags={"project": "returns", "team": {"$in": ["ä", "b"]}},
        similarity_threshold=0.5,
        explain=True,
        token_budget=2000,
        view="catalog",
    )
    asked = server.asked[-1]
    assert (asked.method, urlsplit(asked.target).path) == ("GET", "/memory/search")
    sent = query_of(server)
    assert json.loads(sent.pop("filter_tags")) == {"project": "returns", "team": {"$in": ["ä", "b"]}}
    assert sent == {
        "query": "wie geht’s? a&b=c",
        "user_id": "desk 7",
        "memory_type": "all",
        "search_method": "bm25",
        "search_field": "name",
        "limit": "3",
        "similarity_threshold": "0.5",
        "explain": "true",
        "token_budget": "2000",
        "view": "catalog",
    }


def test_search_across_the_organization_names_no_user(mirix: Mirix, server: Scripted):
    mirix.search_all_users("refund", limit=1, explain=False)
    assert urlsplit(server.asked[-1].target).path == "/memory/search_all_users"
    assert query_of(server) == {"query": "refund", "limit": "1", "explain": "false"}
    theirs, ours = signature(Mirix.search_all_users).parameters, signature(Mirix.search).parameters
    assert list(theirs) == [name for name in ours if name != "user_id"]


@pytest.mark.parametrize("name", ["add", "add_sync"])
def test_messages_go_with_what_is_said_about_them(mirix: Mirix, server: Scripted, name: str):
    getattr(mirix, name)(
        iter(MESSAGES),
        session_id="s-1",
        user_id="desk-7",
        session_tag="task",
        filter_tags={"project": "returns"},
        occurred_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        history="full",
        idempotency_key="mine",
    )
    asked = server.asked[-1]
    assert (asked.method, asked.target) == ("POST", f"/memory/{name}")
    assert asked.json == {
        "messages": MESSAGES,
        "session_id": "s-1",
        "user_id": "desk-7",
        "session_tag": "task",
        "filter_tags": {"project": "returns"},
        "occurred_at": "2026-03-01T09:30:00+00:00",
        "history": "full",
    }
    assert asked.headers["Idempotency-Key"] == "mine"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["X-API-Key"] == KEY


def test_a_dream_says_what_and_whose(mirix: Mirix, server: Scripted):
    mirix.auto_dream(user_id="desk-7", dry_run=True, last_n_sessions=3, model="m", wait=0)
    asked = server.asked[-1]
    assert (asked.method, asked.target) == ("POST", "/memory/auto_dream?wait=0")
    assert asked.json == {"user_id": "desk-7", "dry_run": True, "last_n_sessions": 3, "model": "m"}


def test_ids_stay_within_their_place_in_the_path(mirix: Mirix, server: Scripted):
    mirix.close_session("a/../b?c#ü", user_id="desk-7")
    assert server.asked[-1].target == "/v1/sessions/a%2F..%2Fb%3Fc%23%C3%BC/close"
    assert server.asked[-1].json == {"user_id": "desk-7"}
    mirix.run("run-1/x")
    assert server.asked[-1].target == "/v1/runs/run-1%2Fx"
    mirix.skill("proc-1?x")
    assert server.asked[-1].target == "/v1/skills/proc-1%3Fx"
    mirix.retry_session("a/b", user_id="desk-7")
    assert server.asked[-1].target == "/v1/sessions/a%2Fb/retry"
    assert server.asked[-1].json == {"user_id": "desk-7"}


def test_each_erasure_names_its_subject(mirix: Mirix, server: Scripted):
    mirix.erase_user("desk/7")
    mirix.erase_client("client-1")
    mirix.erase_skill("proc-1")
    assert [(asked.method, asked.target) for asked in server.asked] == [
        ("DELETE", "/users/desk%2F7/memories"),
        ("DELETE", "/clients/client-1/memories"),
        ("DELETE", "/memory/procedural/proc-1"),
    ]


def test_the_server_may_lie_below_a_path(server: Scripted):
    with Mirix(f"{server.url}/büro/%20/", KEY) as mirix:
        mirix.search("x")
    assert server.asked[-1].target == "/b%C3%BCro/%20/memory/search?query=x"


def test_any_text_arrives_as_json_can_carry_it(mirix: Mirix, server: Scripted):
    texts = ["größer 漢字 🙂", "half \ud83d", "both \ud83d\ude42", "nul \x00", "\u2028"]
    mirix.add([{"role": "user", "content": text} for text in texts])
    got = [message["content"] for message in server.asked[-1].json["messages"]]
    assert got == ["größer 漢字 🙂", "half \ud83d", "both 🙂", "nul \x00", "\u2028"]
    assert server.asked[-1].body.isascii()
    for text, arrives in zip(texts[1:3], ["half \ufffd", "both 🙂"], strict=True):
        mirix.search(text, user_id=text, filter_tags={"k": text})
        assert (query_of(server)["query"], query_of(server)["user_id"]) == (arrives, arrives)
        assert json.loads(query_of(server)["filter_tags"]) == json.loads(json.dumps({"k": text}))


def test_messages_may_be_the_objects_of_a_framework(mirix: Mirix, server: Scripted):
    class Model:
        def model_dump(self) -> dict[str, Any]:
            return {"role": "assistant", "content": None, "at": datetime(2026, 3, 1, tzinfo=UTC)}

    @dataclasses.dataclass
    class Message:
        role: str
        content: str

    mirix.add([Model(), Message("user", "Hello.")])
    assert server.asked[-1].json["messages"] == [
        {"role": "assistant", "content": None, "at": "2026-03-01T00:00:00+00:00"},
        {"role": "user", "content": "Hello."},
    ]


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ("text", TypeError),
        ({"role": "user"}, TypeError),
        ([object()], TypeError),
        ([float("nan")], ValueError),
    ],
)
def test_what_is_no_message_is_refused_before_it_is_sent(
    mirix: Mirix, server: Scripted, messages: Any, error: type[Exception]
):
    with pytest.raises(error):
        mirix.add(messages)
    assert server.asked == []


# Connections


def test_a_connection_is_kept_between_calls(mirix: Mirix, server: Scripted):
    for _ in range(3):
        mirix.search("x")
    assert len({asked.connection for asked in server.asked}) == 1


@pytest.mark.parametrize("answer", [Answer(headers={"Connection": "close"}), Answer(last=True)])
def test_a_connection_that_ended_meanwhile_is_replaced_without_a_retry(
    mirix: Mirix, server: Scripted, pauses: list[float], answer: Answer
):
    server.answer(answer)
    mirix.search("x")
    for kept in mirix._transport._idle:
        eventually(lambda kept=kept: transport.has_ended(kept))
    mirix.search("x")
    assert len({asked.connection for asked in server.asked}) == 2
    assert pauses == []


def test_what_cannot_be_repeated_gets_a_connection_of_its_own(mirix: Mirix, server: Scripted):
    mirix.search("x")
    mirix.auto_dream()
    assert len({asked.connection for asked in server.asked}) == 2


def test_threads_may_share_a_client(mirix: Mirix, server: Scripted):
    together = threading.Barrier(4)
    server.answer(Answer(before=lambda: together.wait(30)))
    threads = [threading.Thread(target=mirix.search, args=("x",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({asked.connection for asked in server.asked}) == 4


def test_a_child_process_does_not_speak_on_its_parents_connection(
    mirix: Mirix, server: Scripted, monkeypatch
):
    mirix.search("x")
    kept = list(mirix._transport._idle)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    mirix.search("x")
    assert len({asked.connection for asked in server.asked}) == 2
    kept[0].close()


def test_leaving_the_context_closes_what_is_kept(server: Scripted):
    with Mirix(server.url, KEY) as mirix:
        mirix.search("x")
        (kept,) = mirix._transport._idle
    assert kept.sock is None
    mirix.search("x")
    mirix.close()


# Errors


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (413, TooLarge),
        (429, Throttled),
        (500, ServerError),
        (503, ServerError),
        (418, MirixError),
    ],
)
def test_each_status_has_its_error(server: Scripted, status: int, error: type[MirixError]):
    server.answer(said({"detail": "Said by the server."}, status))
    with Mirix(server.url, KEY, retries=0) as mirix, pytest.raises(MirixError) as raised:
        mirix.search("x")
    assert type(raised.value) is error
    assert (raised.value.status, raised.value.detail) == (status, "Said by the server.")
    assert str(raised.value) == f"{status}: Said by the server."


def test_a_bad_request_names_its_fields(mirix: Mirix, server: Scripted):
    server.answer(said({"limit": ["Too large."], "filter_tags": ["No JSON.", "No object."]}, 400))
    with pytest.raises(BadRequest) as raised:
        mirix.search("x", limit=1000)
    assert raised.value.fields == {"limit": ["Too large."], "filter_tags": ["No JSON.", "No object."]}
    assert str(raised.value) == "400: limit: Too large.; filter_tags: No JSON. No object."


def test_an_error_survives_a_pickle(mirix: Mirix, server: Scripted):
    server.answer(said({"limit": ["Too large."]}, 400))
    with pytest.raises(BadRequest) as raised:
        mirix.search("x")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy), copy.fields) == (BadRequest, str(raised.value), raised.value.fields)


@pytest.mark.parametrize(
    ("answer", "error", "detail"),
    [
        (Answer(502, HTML), ServerError, "not an answer of mirix: 502 Bad Gateway 502 Bad Gateway"),
        (Answer(413, HTML), TooLarge, "not an answer of mirix: 502 Bad Gateway 502 Bad Gateway"),
        (Answer(200, b"<p>Log in\x00 here"), MirixError, "OK; not an answer of mirix: Log in here"),
        (Answer(200, b"[1]"), MirixError, "OK; not an answer of mirix: [1]"),
        (Answer(200, b""), MirixError, "OK; not an answer of mirix: nothing"),
        (Answer(500, b"\xff\xfe"), ServerError, "not an answer of mirix: \ufffd\ufffd"),
        (Answer(500, b"[" * 100_000), ServerError, "not an answer of mirix: [[["),
        (Answer(500, b'"text"'), ServerError, 'not an answer of mirix: "text"'),
    ],
)
def test_what_is_not_mirix_is_said_in_its_own_words(
    server: Scripted, answer: Answer, error: type[MirixError], detail: str
):
    server.answer(answer)
    with Mirix(server.url, KEY, retries=0) as mirix, pytest.raises(error) as raised:
        mirix.search("x")
    assert detail in raised.value.detail
    assert raised.value.status == answer.status
    assert len(raised.value.detail) <= 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(status=st.integers(300, 599), body=JSON, page=st.binary(), retry_after=st.none() | st.text())
def test_whatever_is_answered_becomes_an_error(status: int, body: Any, page: bytes, retry_after: str | None):
    seconds = transport._seconds(retry_after)
    assert seconds is None or seconds >= 0
    error = error_of(status=status, body=body, otherwise=transport._plain(page), retry_after=seconds)
    assert isinstance(error, MirixError)
    assert error.detail
    assert str(error).startswith(f"{status}: ")


def test_a_redirect_is_told_and_not_followed(mirix: Mirix, server: Scripted):
    server.answer(Answer(301, b"", {"Location": "https://elsewhere.example/"}))
    with pytest.raises(MirixError, match="another address") as raised:
        mirix.search("x")
    assert (raised.value.status, len(server.asked)) == (301, 1)


# Trying again


@pytest.mark.parametrize("status", [429, 503])
def test_what_is_refused_for_now_is_tried_again_after_the_pause_it_names(
    mirix: Mirix, server: Scripted, pauses: list[float], status: int
):
    server.answer(Answer(status, b"{}", {"Retry-After": "7"}), said({"run_id": "run-1"}))
    assert mirix.auto_dream(user_id="desk-7") == {"run_id": "run-1"}
    assert pauses == [7.0]


def test_the_pause_may_be_named_as_a_moment(mirix: Mirix, server: Scripted, pauses: list[float]):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=30), usegmt=True)
    server.answer(*(Answer(503, HTML, {"Retry-After": moment}) for moment in (soon, past)), Answer())
    mirix.search("x")
    assert 0 < pauses[0] <= 30
    assert pauses[1] == 0


def test_without_a_named_pause_it_grows(server: Scripted, pauses: list[float]):
    server.answer(Answer(429, b"{}", {"Retry-After": "presently"}))
    with Mirix(server.url, KEY, retries=6) as mirix, pytest.raises(Throttled) as raised:
        mirix.search("x")
    assert raised.value.retry_after is None
    assert len(server.asked) == 7
    for pause, longest in zip(pauses, [0.5, 1, 2, 4, 8, 8], strict=True):
        assert longest / 2 <= pause <= longest


def test_a_pause_longer_than_is_borne_is_raised_at_once(server: Scripted, pauses: list[float]):
    server.answer(Answer(429, b"{}", {"Retry-After": "61"}))
    with Mirix(server.url, KEY) as mirix, pytest.raises(Throttled) as raised:
        mirix.search("x")
    assert raised.value.retry_after == 61.0
    assert (pauses, len(server.asked)) == ([], 1)


def test_it_gives_up_after_its_retries(mirix: Mirix, server: Scripted, pauses: list[float]):
    server.answer(Answer(503, b'{"detail": "The database is not available."}', {"Retry-After": "5"}))
    with pytest.raises(ServerError, match=r"503: The database is not available\.") as raised:
        mirix.search("x")
    assert (pauses, len(server.asked), raised.value.retry_after) == ([5.0, 5.0], 3, 5.0)


@pytest.mark.parametrize("fault", [Answer(dead=True), Answer(502, HTML), Answer(504, HTML)])
def test_a_lost_connection_is_tried_again_under_the_same_idempotency_key(
    mirix: Mirix, server: Scripted, fault: Answer
):
    server.answer(fault, fault, said({"intake_id": "intake-1"}))
    assert mirix.add_sync(MESSAGES)["intake_id"] == "intake-1"
    keys = [asked.headers["Idempotency-Key"] for asked in server.asked]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    mirix.add_sync(MESSAGES)
    assert server.asked[-1].headers["Idempotency-Key"] not in keys


@pytest.mark.parametrize("fault", [Answer(dead=True), Answer(502, HTML)])
@pytest.mark.parametrize("name", ["auto_dream", "erase_user"])
def test_what_may_be_done_although_its_answer_was_lost_is_not_asked_for_twice(
    mirix: Mirix, server: Scripted, pauses: list[float], fault: Answer, name: str
):
    server.answer(fault)
    with pytest.raises(MirixError) as raised:
        getattr(mirix, name)(user_id="desk-7")
    assert (len(server.asked), pauses) == (1, [])
    if isinstance(raised.value, Unreachable):
        assert raised.value.sent


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 500])
def test_what_would_fail_again_is_not_tried_again(mirix: Mirix, server: Scripted, status: int):
    server.answer(said({"detail": "No."}, status, **{"Retry-After": "1"}))
    with pytest.raises(MirixError):
        mirix.search("x")
    assert len(server.asked) == 1


def test_a_server_that_is_down_is_unreachable(pauses: list[float]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Mirix(f"http://127.0.0.1:{port}", KEY) as mirix, pytest.raises(Unreachable) as raised:
        mirix.auto_dream(user_id="desk-7")
    assert raised.value.detail == f"http://127.0.0.1:{port} cannot be reached: Connection refused"
    assert (raised.value.status, raised.value.sent, len(pauses)) == (None, False, 2)


def test_a_server_without_tls_is_unreachable_by_https(server: Scripted, pauses: list[float]):
    url = server.url.replace("http:", "https:")
    with Mirix(url, KEY) as mirix, pytest.raises(Unreachable, match="cannot be reached") as raised:
        mirix.search("x")
    assert not raised.value.sent
    assert server.asked == []


def test_a_certificate_that_is_wrong_stays_wrong(pauses: list[float], monkeypatch):
    def connect(_: object) -> None:
        raise ssl.SSLCertVerificationError("self-signed certificate")

    monkeypatch.setattr(http.client.HTTPSConnection, "connect", connect)
    with Mirix("https://mirix.example.com", KEY) as mirix, pytest.raises(Unreachable, match="self-signed"):
        mirix.search("x")
    assert pauses == []


def test_a_server_that_is_silent_is_unreachable(server: Scripted):
    over = threading.Event()
    server.answer(Answer(before=lambda: over.wait(30)))
    try:
        with Mirix(server.url, KEY, timeout=0.1, retries=1) as mirix, pytest.raises(Unreachable) as raised:
            mirix.search("x")
    finally:
        over.set()
    assert raised.value.detail == f"{server.url} did not answer: no answer within 0.1 s"
    assert raised.value.sent
    assert len(server.asked) == 2


def test_an_answer_that_trickles_is_given_up(server: Scripted, monkeypatch):
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(transport, "monotonic", lambda: next(clock))
    server.answer(Answer(body=b" " * 1_000_000 + b"{}"))
    with Mirix(server.url, KEY, retries=0) as mirix, pytest.raises(Unreachable, match="within 30 s"):
        mirix.search("x")


def test_half_an_answer_is_none(mirix: Mirix, server: Scripted):
    server.answer(
        Answer(body=b"{}", headers={"Content-Length": "9", "Connection": "close"}), said({"count": 0})
    )
    assert mirix.search("x") == {"count": 0}


def test_the_wait_for_a_dream_comes_on_top_of_the_timeout(mirix: Mirix, server: Scripted, monkeypatch):
    seconds: list[float] = []
    connected = transport.Transport._connected
    monkeypatch.setattr(transport.Transport, "_kept", lambda self, left: None)
    monkeypatch.setattr(
        transport.Transport, "_connected", lambda self, left: seconds.append(left) or connected(self, left)
    )
    mirix.auto_dream()
    mirix.auto_dream(wait=0)
    mirix.auto_dream(wait=600)
    mirix.search("x")
    assert seconds == [55, 30, 55, 30]


def test_a_run_is_looked_at_until_it_has_ended(mirix: Mirix, server: Scripted, pauses: list[float]):
    states = ["queued", "running", "finished"]
    server.answer(*(said({"id": "run-1", "state": state}) for state in states))
    assert mirix.wait_for_run("run-1", every=0.25)["state"] == "finished"
    assert pauses == [0.25, 0.25]
    server.answer(said({"id": "run-1", "state": "running"}))
    assert mirix.wait_for_run("run-1", seconds=0)["state"] == "running"


# The key


def everything_said(mirix: Mirix) -> str:
    """What is known of an error: its traceback with the variables of every frame, as reporters send it."""
    with pytest.raises(MirixError) as raised:
        mirix.search("x")
    shown = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    return "".join(shown.format()) + repr(raised.value) + repr(vars(raised.value))


def test_the_key_is_in_no_text(server: Scripted, caplog, monkeypatch):
    def broken(*_: object) -> None:
        raise OSError("the cable")

    caplog.set_level(logging.DEBUG)
    mirix = Mirix(server.url, KEY, retries=1)
    texts = [repr(mirix), str(mirix), repr(vars(mirix)), repr(vars(mirix._transport))]
    echo = f"<p>X-API-Key: {KEY}</p>".encode()
    for answer in (
        Answer(502, echo),
        Answer(200, echo),
        said({"detail": f"The key {KEY} is wrong.", KEY: [KEY]}, 401),
        Answer(302, b"", {"Location": f"/login?key={KEY}"}),
        Answer(dead=True),
    ):
        server.answer(answer)
        texts.append(everything_said(mirix))
    monkeypatch.setattr(http.client.HTTPConnection, "send", broken)
    texts.append(everything_said(mirix))
    mirix.close()
    texts.append(caplog.text)
    assert "again in" in caplog.text
    assert [text[text.index(KEY) - 200 :][:400] for text in texts if KEY in text] == []


@pytest.mark.parametrize("key", ["", " ", f"{KEY}\n", f"{KEY}\r\nX: y", "schlüssel-0123", f"{KEY}\x00"])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str):
    with pytest.raises(ValueError, match="API key") as raised:
        Mirix("http://127.0.0.1:8531", key)
    assert not key.strip() or key.strip() not in str(raised.value)


def test_a_key_of_idempotency_is_one_line(mirix: Mirix, server: Scripted):
    for key in ("", "a\nb", "ü"):
        with pytest.raises(ValueError, match="idempotency_key"):
            mirix.add(MESSAGES, idempotency_key=key)
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8531",
        "ftp://host",
        "http://",
        "http://host?x=1",
        "http://host#x",
        "http://user:pw@host",
    ],
)
def test_an_address_that_is_none_is_refused(url: str):
    with pytest.raises(ValueError, match="base_url"):
        Mirix(url, KEY)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"retries": -1}, {"longest_pause": -1}])
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]):
    with pytest.raises(ValueError, match="timeout must be positive"):
        Mirix("http://127.0.0.1:8531", KEY, **options)


# The package


def test_it_imports_nothing_but_the_standard_library_and_itself():
    code = (
        "import sys; import mirix.client; "
        "print([name for name in sys.modules if name.partition('.')[0] not in sys.stdlib_module_names])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    loaded = {name for name in eval(done.stdout) if name not in {"__main__", "mirix"}}
    assert loaded == {f"mirix.client{part}" for part in ("", ".answers", ".client", ".errors", ".transport")}


def test_all_that_is_public_says_what_it_does():
    public = [getattr(package, name) for name in package.__all__]
    public += [member for name, member in vars(Mirix).items() if not name.startswith("_")]
    assert not [thing for thing in public if not thing.__doc__]
