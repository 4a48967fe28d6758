"""The page of a request: what became of each message, and the body as it came."""

from __future__ import annotations

import pytest
from django.test import Client as Browser
from django.urls import reverse

from conversations.account import Line, indexes_of, lines, spans
from conversations.admin import kept
from conversations.envelope import checked
from conversations.intake import accept, replay
from conversations.models import IntakeRecord
from tests.factories import make_client, make_intake, make_superuser


@pytest.fixture
def browser(db) -> Browser:
    browser = Browser()
    browser.force_login(make_superuser())
    return browser


def shown(browser: Browser, record: IntakeRecord) -> str:
    address = reverse("admin:conversations_intakerecord_change", args=[record.pk])
    return browser.get(address).content.decode()


def add(owner, *messages) -> IntakeRecord:
    envelope = checked(messages=list(messages), session_id="s-1")
    client = make_client(owner.organization)
    return accept(client=client, owner=owner, envelope=envelope, wait=True).record


@pytest.mark.parametrize(
    ("indexes", "found"),
    [([], []), ([3], [[3, 3]]), ([2, 0, 1, 5, 1], [[0, 2], [5, 5]])],
)
def test_spans_are_the_fewest(indexes, found):
    assert spans(indexes) == found
    assert indexes_of(found) == set(indexes)


def test_each_message_stands_in_one_line():
    report = {
        "skipped": [
            {"index": 0, "reason": "system message"},
            {"index": 6, "reason": "?", "unreadable": True},
        ],
        "truncated_at": [[3, 3]],
        "duplicate_at": [[1, 2]],
    }
    assert lines(report, 7) == [
        Line(first=0, last=0, outcome="skipped", reason="system message"),
        Line(first=1, last=2, outcome="duplicate"),
        Line(first=3, last=3, outcome="truncated"),
        Line(first=4, last=5, outcome="stored"),
        Line(first=6, last=6, outcome="unreadable", reason="?"),
    ]


def test_the_report_names_what_was_cut_and_what_was_there_already(owner):
    say = [{"role": "user", "content": text} for text in ("one", "two", "x" * 70_000)]
    assert "duplicate_at" not in (add(owner, *say[:2]).report or {})
    report = add(owner, {"role": "system", "content": "Be kind."}, *say).report or {}
    assert (report["duplicate_at"], report["truncated_at"]) == ([[1, 2]], [[3, 3]])
    assert [(line.first, line.last, line.outcome) for line in lines(report, 4)] == [
        (0, 0, "skipped"),
        (1, 2, "duplicate"),
        (3, 3, "truncated"),
    ]


def test_a_replay_keeps_what_the_first_report_named(owner, monkeypatch):
    record = add(owner, {"role": "user", "content": "x" * 70_000}, {"what": "is this"})
    assert record.state == "partial"
    record.body = {"messages": [{"role": "user", "content": "x" * 70_000}, {"role": "user", "content": "y"}]}
    record.save()
    report = replay(record=record).report or {}
    assert (report["stored"], report["truncated_at"]) == (2, [[0, 0]])


def test_the_page_tells_of_each_message_and_leads_to_its_turns(owner, browser):
    record = add(owner, {"role": "system", "content": "Be kind."}, {"role": "user", "content": "x" * 70_000})
    text = shown(browser, record)
    for part in ("system message", "Left out", "Stored, cut", "#turn-1", "dropped: its turns are stored"):
        assert part in text


def test_a_kept_body_is_text_message_by_message(owner, browser):
    hostile = "</pre></details><script>alert(1)</script>\u202e"
    record = add(owner, {"role": "user", "content": "Hello"}, {"what": hostile})
    text = shown(browser, record)
    assert record.state == "partial"
    assert "Not understood" in text
    assert 'id="message-1"' in text
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_a_large_body_is_shown_by_its_beginning(owner, browser, monkeypatch):
    monkeypatch.setattr(kept, "MAX_BODY_CHARS", 1_000)
    monkeypatch.setattr(kept, "MAX_SHOWN_CHARS", 500)
    body = {"messages": [{"role": "user", "content": "hello " * 1_000}]}
    text = shown(browser, make_intake(owner, state="failed", body=body))
    assert "too large for this page" in text
    assert text.count("hello ") < 100


def test_a_long_message_and_many_are_cut_for_the_page(owner, monkeypatch):
    monkeypatch.setattr(kept, "MAX_SHOWN_CHARS", 50)
    monkeypatch.setattr(kept, "MAX_MESSAGES", 2)
    body = {"messages": [{"content": "x" * 100}, {"content": "y"}, {"content": "z"}]}
    found = kept.kept_messages(make_intake(owner, state="failed", body=body))
    assert found is not None
    assert [(index, cut) for index, _text, cut in found.messages] == [(0, True), (1, False)]
    assert (found.more, kept.kept_messages(make_intake(owner))) == (1, None)
