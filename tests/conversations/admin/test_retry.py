"""Sessions that were given up, in the admin: why, with what was answered, and retried by one or by many."""

from __future__ import annotations

import pytest
from django.contrib.messages import get_messages
from django.test import Client as Browser
from django.urls import reverse

from conversations.models import Session
from mirix.tenants.models import AuditEvent, Membership
from skills.models import AutoDreamRun
from tests.factories import make_attempt, make_member, make_owner, make_run, make_session, make_superuser

pytestmark = pytest.mark.django_db
LIST = "/admin/conversations/session/"
DEAD = f"{LIST}?state__exact=dead"
MANY = f"{LIST}retry/"
TURNS = [{"role": "user", "content": "No, the other one."}]


def dead(owner, session_id: str, **fields) -> Session:
    error = fields.pop("last_error", "The reply was no JSON: <b>Sure!</b>")
    return make_session(
        owner,
        TURNS,
        session_id=session_id,
        **({"state": "dead", "attempts": 5, "last_error": error} | fields),
    )


def browser_of(user) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def operator(owner) -> Browser:
    return browser_of(make_member(owner.organization, "operator", "olga"))


def page(session: Session) -> str:
    return reverse("admin:conversations_session_change", args=[session.pk])


def retry(session: Session) -> str:
    return reverse("admin:conversations_session_retry", args=[session.pk])


def said(answer) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def states() -> dict[str, str]:
    return dict(Session.objects.values_list("session_id", "state"))


class TestOne:
    def test_its_page_says_why_and_shows_what_was_answered(self, owner, operator):
        session = dead(owner, "s-1")
        run = make_run(owner)
        hostile = "</pre><script>alert(1)</script>\u202egnp.exe"
        make_attempt(run, session, verdict="retry", raw_reply="the first", error="No JSON.")
        make_attempt(run, session, verdict="dead", raw_reply=hostile, error="No JSON again.", model="m-1")

        text = operator.get(page(session)).content.decode()

        assert "Given up after 5 attempts. The reply was no JSON: &lt;b&gt;Sure!&lt;/b&gt;" in text
        assert "the first" in text
        assert "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert text.index("No JSON again.") < text.index("No JSON.")

    def test_of_a_reply_without_end_both_ends_are_shown(self, owner, operator):
        session = dead(owner, "s-1")
        make_attempt(make_run(owner), session, raw_reply="a" * 20_000 + "b" * 50_000 + "the end")

        answer = operator.get(page(session))

        assert b"50007 characters in between are not shown" in answer.content
        assert b"the end" in answer.content
        assert len(answer.content) < 100_000

    def test_it_is_retried(self, owner, operator):
        session = dead(owner, "s-1")
        answer = operator.post(retry(session))
        assert (answer.status_code, answer["Location"]) == (302, page(session))
        assert said(answer) == ["The next run reads it again."]
        assert states() == {"s-1": "sealed"}
        assert AuditEvent.objects.get().actor_name == "olga"
        assert AutoDreamRun.objects.get().state == "queued"
        assert ">Retry</button>" not in operator.get(page(session)).content.decode()

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"state": "open"}, "It has not failed."),
            ({"distilled_through": 1}, "Its turns were pruned; nothing is left to learn from."),
        ],
    )
    def test_what_cannot_be_retried_says_why(self, owner, operator, fields, why):
        session = dead(owner, "s-1", **fields)
        assert ">Retry</button>" not in operator.get(page(session)).content.decode()
        assert said(operator.post(retry(session))) == [why]
        assert not AuditEvent.objects.exists()

    @pytest.mark.parametrize(("role", "status"), [("reviewer", 403), ("administrator", 302)])
    def test_by_role(self, owner, role, status):
        session = dead(owner, "s-1")
        member = browser_of(make_member(owner.organization, role))
        assert (">Retry</button>" in member.get(page(session)).content.decode()) is (status == 302)
        assert member.post(retry(session)).status_code == status
        assert states() == {"s-1": "sealed" if status == 302 else "dead"}

    def test_a_stranger_gets_what_a_missing_one_gets_and_a_get_changes_nothing(
        self, owner, stranger, operator
    ):
        session = dead(owner, "s-1")
        elsewhere = browser_of(make_member(stranger.organization, "administrator"))
        foreign = elsewhere.post(retry(session))
        missing = elsewhere.post(retry(Session(pk="session-none")))
        assert (foreign.status_code, foreign.content) == (404, missing.content)
        assert operator.get(retry(session)).status_code == 405
        assert states() == {"s-1": "dead"}


class TestMany:
    def test_the_list_says_why(self, owner, operator):
        dead(owner, "s-1")
        make_session(owner, TURNS, session_id="s-2", state="distilled", last_error="no longer true")
        text = operator.get(DEAD).content.decode()
        assert "The reply was no JSON: &lt;b&gt;Sure!&lt;/b&gt;" in text
        assert "no longer true" not in text
        assert "no JSON" not in operator.get(LIST).content.decode()

    def test_a_selection_is_asked_about_and_each_one_says_what_came_of_it(self, owner, operator):
        one, two, other = dead(owner, "one"), dead(owner, "two"), dead(owner, "other")
        fine = make_session(owner, TURNS, session_id="fine", state="distilled")
        chosen = [row.pk for row in (one, two, fine)]
        answer = operator.post(DEAD, {"action": "retry_selected", "_selected_action": chosen[:2]})
        assert answer["Location"].startswith(f"{MANY}?ids=")
        asked = operator.get(f"{MANY}?ids={','.join(chosen)}").content.decode()
        assert "Retry 2 sessions" in asked
        assert asked.count("The reply was no JSON: &lt;b&gt;") == 2
        assert asked.count("It has not failed.") == 1
        assert f'value="{fine.pk}" aria-label="Retry fine" disabled' in asked

        done = operator.post(MANY, {"ids": chosen})

        assert done.status_code == 200
        assert said(done) == ["2 sessions retried, 1 left as it was."]
        text = done.content.decode()
        assert (text.count("The next run reads it again."), text.count("It has not failed.")) == (2, 1)
        assert states() == {"one": "sealed", "two": "sealed", "other": "dead", "fine": "distilled"}
        assert other.state == "dead"
        assert AuditEvent.objects.count() == 2

    def test_all_of_a_list_are_those_that_its_filters_show(self, owner, operator):
        dead(owner, "one"), dead(owner, "two")
        answer = operator.post(
            DEAD, {"action": "retry_selected", "select_across": "1", "_selected_action": ["x"]}
        )
        assert answer["Location"] == f"{MANY}?state__exact=dead"
        assert "Retry 2 sessions" in operator.get(answer["Location"]).content.decode()
        assert "Retry 1 session" in operator.get(f"{MANY}?state__exact=dead&q=tw").content.decode()

    def test_of_very_many_the_first_are_asked_about(self, owner, operator, monkeypatch):
        monkeypatch.setattr("mirix.admin_bulk.AT_MOST", 2)
        for number in range(3):
            dead(owner, f"s-{number}")
        asked = operator.get(f"{MANY}?state__exact=dead").content.decode()
        assert "These are the first 2 of the list" in asked
        operator.post(MANY, {"ids": list(Session.objects.values_list("pk", flat=True))})
        assert sorted(states().values()) == ["dead", "sealed", "sealed"]

    def test_only_where_the_user_operates(self, owner, stranger):
        member = make_member(owner.organization, "operator")
        reads = make_owner()
        Membership.objects.create(organization=reads.organization, user=member, role="reviewer")
        own, read, foreign = dead(owner, "own"), dead(reads, "read"), dead(stranger, "foreign")
        ids = [own.pk, read.pk, foreign.pk]

        asked = browser_of(member).get(f"{MANY}?ids={','.join(ids)}").content.decode()
        done = browser_of(member).post(MANY, {"ids": ids})

        assert "foreign" not in asked + done.content.decode()
        assert "Your role in its organization does not let you." in done.content.decode()
        assert said(done) == ["1 session retried, 1 left as it was."]
        assert states() == {"own": "sealed", "read": "dead", "foreign": "dead"}

    def test_a_reviewer_is_refused_each_way(self, owner):
        session = dead(owner, "s-1")
        reviewer = browser_of(make_member(owner.organization, "reviewer"))
        assert "retry_selected" not in reviewer.get(LIST).content.decode()
        sent = {"action": "retry_selected", "_selected_action": [session.pk]}
        assert reviewer.post(LIST, sent).status_code == 403
        assert reviewer.get(MANY).status_code == reviewer.post(MANY, {"ids": [session.pk]}).status_code == 403
        assert states() == {"s-1": "dead"}

    def test_nothing_selected(self, owner, operator):
        assert "Nothing was selected." in operator.get(f"{MANY}?ids=").content.decode()
        assert said(operator.post(MANY)) == ["No session was selected."]
        assert operator.get(f"{MANY}?ids=a%00b").status_code == 200
        assert operator.post(MANY, {"ids": ["a\x00b"]}).status_code == 200

    def test_more_rows_take_no_more_queries(self, owner, django_assert_num_queries):
        superuser = browser_of(make_superuser())
        dead(owner, "s-0")
        superuser.get(DEAD)
        for number in range(1, 21):
            dead(make_owner(), f"s-{number}")
        with django_assert_num_queries(8):
            superuser.get(DEAD)
        with django_assert_num_queries(5):
            superuser.get(f"{MANY}?ids={','.join(Session.objects.values_list('pk', flat=True))}")
