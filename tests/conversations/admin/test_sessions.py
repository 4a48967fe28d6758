"""A long session in the admin: from error to error, to turns that say a word, closed by an operator."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client as Browser
from django.urls import reverse

from conversations.admin import finding
from conversations.admin.finding import errors_around, search_turns
from conversations.admin.marks import Piece, mark_word, with_stand_ins
from conversations.models import Session
from mirix.tenants.models import AuditEvent
from tests.factories import make_intake, make_member, make_session, make_superuser


def talk(owner, count: int, errors: tuple[int, ...] = (), **fields: Any) -> Session:
    turns: list[dict[str, Any]] = [
        {"role": "tool", "tool_name": "read", "content": f"[read] say {n}", "is_error": n in errors}
        for n in range(1, count + 1)
    ]
    return make_session(owner, turns, **fields)


def page(session: Session) -> str:
    return reverse("admin:conversations_session_change", args=[session.pk])


def as_member(organization, role: str = "operator") -> Browser:
    browser = Browser()
    browser.force_login(make_member(organization, role))
    return browser


@pytest.fixture
def browser(db) -> Browser:
    browser = Browser()
    browser.force_login(make_superuser())
    return browser


class TestErrors:
    def test_each_leads_to_the_next_over_the_border_of_a_page(self, owner):
        session = talk(owner, 250, errors=(3, 50, 120, 240))
        first = errors_around(session, 1)
        assert first is not None
        assert (first.count, first.number) == (4, "4")
        assert first.first_url == f"{page(session)}#turn-3"
        assert [first.next_urls[seq] for seq in (3, 50)] == [
            f"{page(session)}#turn-50",
            f"{page(session)}?page=2#turn-120",
        ]
        last = errors_around(session, 3)
        assert last is not None
        assert (last.first_url, last.next_urls) == (f"{page(session)}?page=3#turn-240", {})

    def test_behind_the_last_comes_the_first(self, owner):
        session = talk(owner, 150, errors=(7,))
        found = errors_around(session, 2)
        assert found is not None
        assert found.first_url == f"{page(session)}#turn-7"

    def test_a_page_of_errors_alone_leads_on_from_each(self, owner):
        session = talk(owner, 120, errors=tuple(range(1, 121)))
        found = errors_around(session, 1)
        assert found is not None
        assert list(found.next_urls) == list(range(1, 101))
        assert found.next_urls[100] == f"{page(session)}?page=2#turn-101"

    def test_very_many_are_not_counted(self, owner, monkeypatch):
        monkeypatch.setattr(finding, "MAX_COUNTED", 2)
        found = errors_around(talk(owner, 9, errors=(1, 2, 3, 4)), 1)
        assert found is not None
        assert (found.count, found.number) == (3, "more than 2")

    def test_a_session_without_errors_offers_none(self, owner, browser):
        session = talk(owner, 3)
        assert errors_around(session, 1) is None
        assert "data-next-error" not in browser.get(page(session)).content.decode()

    def test_the_page_has_the_way(self, owner, browser):
        text = browser.get(page(talk(owner, 3, errors=(1, 3)))).content.decode()
        assert "Next of 2 errors" in text
        assert text.count("data-after-error") == 1


class TestSearch:
    def test_finds_in_any_case_and_marks(self, owner, browser):
        session = talk(owner, 12)
        text = browser.get(page(session), {"q": "SAY 1"}).content.decode()
        assert "4 turns say" in text
        assert text.count("<mark>say 1</mark>") == 4
        assert 'id="turn-2"' not in text

    def test_a_sign_of_a_pattern_is_a_letter(self, owner):
        session = make_session(
            owner, [{"role": "user", "content": text} for text in ("100%", "100", "a_b", "axb")]
        )
        assert [turn.seq for turn in search_turns(session, "100%", 0).turns] == [1]
        assert [turn.seq for turn in search_turns(session, "a_b", 0).turns] == [3]

    def test_goes_on_where_it_stopped(self, owner, browser, monkeypatch):
        monkeypatch.setattr(finding, "SEARCHED_AT_A_TIME", 5)
        session = talk(owner, 12)
        text = browser.get(page(session), {"q": "say 12"}).content.decode()
        assert "0 turns say" in text
        assert "up to turn 5 of 12" in text
        assert "after=5" in text
        found = search_turns(session, "say 12", 10)
        assert ([turn.seq for turn in found.turns], found.is_over) == ([12], True)

    def test_stops_at_a_page_of_finds(self, owner, monkeypatch):
        monkeypatch.setattr(finding, "MAX_FOUND", 3)
        found = search_turns(talk(owner, 9), "say", 0)
        assert ([turn.seq for turn in found.turns], found.through, found.is_over) == ([1, 2, 3], 3, False)

    @pytest.mark.parametrize(
        "query", ["%00", "%00x", "x" * 5_000, "%FF", "%5C", "%25", "x&after=-1", "x&after=zz"]
    )
    def test_any_word_is_answered(self, query, owner, browser):
        assert browser.get(f"{page(talk(owner, 2))}?q={query}").status_code == 200

    def test_what_is_searched_for_is_text(self, owner, browser):
        text = browser.get(page(talk(owner, 1)), {"q": '"><script>alert(1)</script>'}).content.decode()
        assert "<script>alert" not in text


class TestStandIns:
    def test_media_and_cuts_are_told_from_the_words_around_them(self):
        text = "See [image: image/png, 3.4 KB] and [file]… [truncated, 70000 characters in all]"
        assert with_stand_ins([Piece(text)]) == [
            Piece("See "),
            Piece("[image: image/png, 3.4 KB]", stands_for="medium"),
            Piece(" and "),
            Piece("[file]", stands_for="medium"),
            Piece("… [truncated, 70000 characters in all]", stands_for="cut"),
        ]

    def test_what_is_marked_stays_marked(self):
        assert with_stand_ins([Piece("[file]", marked=True)]) == [Piece("[file]", marked=True)]

    def test_a_word_is_marked_at_every_place(self):
        assert mark_word("Pay, pay.", "PAY") == [
            Piece("Pay", marked=True),
            Piece(", "),
            Piece("pay", marked=True),
            Piece("."),
        ]
        assert mark_word("", "x") == [Piece("")]

    def test_the_page_shows_them(self, owner, browser):
        session = make_session(owner, [{"role": "user", "content": "Look: [image: image/png, 3.4 KB]"}])
        text = browser.get(page(session)).content.decode()
        assert '<span class="mx-stand-in mx-stand-in--medium">[image: image/png, 3.4 KB]</span>' in text


class TestClosing:
    def close(self, browser: Browser, session: Session) -> Any:
        return browser.post(reverse("admin:conversations_session_close", args=[session.pk]))

    def test_an_operator_closes_an_open_session_with_a_trail(self, owner):
        session = talk(owner, 2, state="open", session_id="s-1")
        waiting = make_intake(
            owner,
            state="queued",
            session_id="s-1",
            body={"messages": [{"role": "user", "content": "and one more"}]},
        )
        browser = as_member(owner.organization)
        assert "Close session" in browser.get(page(session)).content.decode()
        answer = self.close(browser, session)
        assert (answer.status_code, answer["Location"]) == (302, page(session))
        assert [str(note) for note in get_messages(answer.wsgi_request)] == ["The session is closed."]
        session.refresh_from_db()
        waiting.refresh_from_db()
        assert (session.state, session.turn_count, waiting.state) == ("sealed", 3, "stored")
        assert session.closed_at is not None
        event = AuditEvent.objects.get()
        assert (event.action, event.target_type, event.target_id) == ("session.closed", "session", session.pk)

    @pytest.mark.parametrize("state", ["sealed", "distilled", "dead"])
    def test_one_that_is_not_open_stays_as_it_is(self, state, owner):
        session = talk(owner, 2, state=state)
        browser = as_member(owner.organization)
        assert "Close session" not in browser.get(page(session)).content.decode()
        assert self.close(browser, session).status_code == 302
        session.refresh_from_db()
        assert (session.state, session.closed_at) == (state, None)
        assert AuditEvent.objects.count() == 0

    def test_by_role(self, owner, stranger):
        session = talk(owner, 2, state="open")
        reviewer = as_member(owner.organization, "reviewer")
        assert "Close session" not in reviewer.get(page(session)).content.decode()
        assert self.close(reviewer, session).status_code == 403
        assert self.close(as_member(stranger.organization), session).status_code == 404
        session.refresh_from_db()
        assert session.state == "open"
        assert self.close(as_member(owner.organization, "administrator"), session).status_code == 302
