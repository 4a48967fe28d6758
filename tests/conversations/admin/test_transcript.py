"""The transcript as people read it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.admin.marks import Piece
from conversations.admin.transcript import Pin, page_of, turn_url, turns_of_page, view_turns
from conversations.models import ConversationMessage
from tests.factories import make_experience, make_session, make_superuser

CALL = '[call pay] {"card": "7"}'


def turn(**fields) -> ConversationMessage:
    return ConversationMessage(**({"seq": 1, "role": "assistant"} | fields))


def view(row: ConversationMessage, *pins: Pin):
    return view_turns([row], pins)[0]


def pin(quote: str) -> Pin:
    return Pin(seq=1, title="lesson", kind="success", label="Worth learning", quote=quote, url="/x")


def test_calls_are_taken_out_of_what_was_said():
    shown = view(turn(content=f"I pay.\n{CALL}", tool_calls=[{"name": "pay", "arguments": {"card": "7"}}]))
    assert shown.pieces == [Piece("I pay.")]
    assert [(call.name, call.pieces) for call in shown.calls] == [("pay", [Piece('{\n  "card": "7"\n}')])]


def test_a_turn_of_calls_alone_says_nothing():
    calls = [{"name": "pay", "arguments": {"card": "7"}}] * 2
    shown = view(turn(content=f"{CALL}\n{CALL}", tool_calls=calls))
    assert shown.pieces == []
    assert len(shown.calls) == 2


def test_a_quote_inside_a_call_is_shown_as_it_was_written():
    shown = view(
        turn(content=CALL, tool_calls=[{"name": "pay", "arguments": {"card": "7"}}]), pin('"card": "7"')
    )
    assert shown.calls[0].is_quoted
    assert Piece('"card": "7"', marked=True) in shown.calls[0].pieces


def test_content_whose_calls_are_not_found_is_shown_whole():
    shown = view(turn(content="Something else.", tool_calls=[{"name": "pay", "arguments": "{"}]))
    assert shown.pieces == [Piece("Something else.")]
    assert shown.calls[0].pieces == [Piece("{")]


def test_a_cut_turn_is_shown_as_it_is_stored():
    content = f"{CALL}\n{CALL}"
    shown = view(turn(content=content, tool_calls=[{"name": "pay", "arguments": {}}], truncated=True))
    assert shown.pieces == [Piece(content)]
    assert shown.truncated


def test_long_tool_output_is_folded_unless_something_was_learned_from_it():
    long = turn(role="tool", tool_name="read", content="[read] " + "x" * 2_000)
    assert view(long).folded
    assert view(long).preview.startswith("xxx")
    assert not view(long, pin("xxx")).folded


def test_the_name_of_the_tool_is_not_repeated_unless_it_is_quoted():
    row = turn(role="tool", tool_name="read", content="[read] Error: no such file")
    assert view(row).pieces == [Piece("Error: no such file")]
    assert view(row, pin("[read] Error")).pieces[0] == Piece("[read] Error", marked=True)


def test_turns_are_paged_by_their_number():
    assert [page_of(seq) for seq in (1, 100, 101, 200, 201)] == [1, 1, 2, 2, 3]
    assert turn_url("session-1", 7).endswith("/session-1/change/#turn-7")
    assert turn_url("session-1", 101).endswith("/session-1/change/?page=2#turn-101")
    assert turn_url("session-1", None).endswith("/session-1/change/")


@pytest.mark.django_db
def test_a_page_holds_its_own_hundred_turns(owner):
    session = make_session(owner, [{"role": "user", "content": f"say {n}"} for n in range(1, 251)])
    assert [row.seq for row in turns_of_page(session, 3)] == list(range(201, 251))


@pytest.fixture
def admin_page(db) -> Browser:
    browser = Browser()
    browser.force_login(make_superuser())
    return browser


def session_page(session) -> str:
    return reverse("admin:conversations_session_change", args=[session.pk])


def test_the_page_shows_speakers_errors_cuts_and_what_was_learned(owner, admin_page):
    session = make_session(
        owner,
        [
            {"role": "user", "content": "Read it."},
            {"role": "tool", "content": "[read] Error: no such file", "tool_name": "read", "is_error": True},
            {"role": "assistant", "content": "long … [truncated, 9 characters in all]", "truncated": True},
        ],
    )
    experience = make_experience(
        owner,
        session,
        title="Look before you read",
        quote="Error: no such file",
        turn=session.turns.get(seq=2),
        turn_seq=2,
    )
    text = admin_page.get(session_page(session)).content.decode()
    for part in (
        'id="turn-1"',
        "<mark>Error: no such file</mark>",
        "mx-turn--error",
        "cut at intake",
        "Look before you read",
        reverse("admin:skills_skillexperience_change", args=[experience.pk]),
    ):
        assert part in text


def test_a_page_number_that_is_none_is_the_first(owner, admin_page):
    session = make_session(owner, [{"role": "user", "content": "the only turn"}])
    for page in ("2", "0", "-1", "x", "9" * 5_000, "²"):
        assert "the only turn" in admin_page.get(session_page(session), {"page": page}).content.decode()


def test_a_long_transcript_costs_as_many_queries_as_a_short_one(owner, admin_page):
    session = make_session(owner, [{"role": "user", "content": "one"}])
    make_experience(owner, session, quote="one")
    admin_page.get(session_page(session))
    with CaptureQueriesContext(connection) as one:
        admin_page.get(session_page(session))
    long = make_session(owner, [{"role": "user", "content": f"say {n}"} for n in range(90)])
    for row in long.turns.all()[:20]:
        make_experience(owner, long, quote="say", turn=row, turn_seq=row.seq)
    with CaptureQueriesContext(connection) as many:
        admin_page.get(session_page(long))
    assert len(many) == len(one)


def test_what_a_transcript_says_is_text(owner, admin_page):
    hostile = '<img src=x onerror="alert(1)"></details><script>alert(1)</script>'
    session = make_session(
        owner,
        [{"role": "tool", "content": hostile * 30, "tool_name": hostile, "tool_calls": []}],
        last_error=hostile,
        filter_tags={hostile: hostile},
    )
    make_experience(owner, session, title=hostile, quote=hostile)
    text = admin_page.get(session_page(session)).content.decode()
    assert "<img src=x" not in text
    assert "<script>alert" not in text
