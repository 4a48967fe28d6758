"""Replay from the ledger: of one request, of a selection, of all of a list; by operators, with a trail."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.messages import get_messages
from django.http import HttpResponse
from django.test import Client as Browser
from django.urls import reverse
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations import operating
from conversations.models import ConversationMessage, IntakeRecord
from conversations.operating import replay_by_id, replay_request
from mirix.tenants.audit import SYSTEM
from mirix.tenants.models import AuditEvent, Membership
from mirix.tenants.owners import Owner
from tests.factories import make_intake, make_member, make_owner

pytestmark = pytest.mark.django_db
LIST = "/admin/conversations/intakerecord/"
MANY = f"{LIST}replay/"


def failed(owner: Owner, text: str = "Hello", **fields: Any) -> IntakeRecord:
    """A request whose turns could not be stored."""
    body = {"messages": [{"role": "user", "content": text}]}
    defaults = {"session_id": "s-1", "state": "failed", "error": "DataError: broken", "body": body}
    return make_intake(owner, **(defaults | fields))


def browser_of(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def operator(owner) -> User:
    return make_member(owner.organization, "operator", "olga")


@pytest.fixture
def browser(operator) -> Browser:
    return browser_of(operator)


def page(record: IntakeRecord) -> str:
    return reverse("admin:conversations_intakerecord_change", args=[record.pk])


def replay(record: IntakeRecord) -> str:
    return reverse("admin:conversations_intakerecord_replay", args=[record.pk])


def said(answer: HttpResponse) -> list[str]:
    return [str(message) for message in get_messages(answer.wsgi_request)]


def states() -> list[str]:
    return list(IntakeRecord.objects.order_by("created_at", "pk").values_list("state", flat=True))


class TestOne:
    def test_a_failed_request_is_stored_and_the_act_is_in_the_trail(self, owner, browser, operator):
        record = failed(owner)
        assert "Replay" in browser.get(page(record)).content.decode()
        answer = browser.post(replay(record))
        assert (answer.status_code, answer["Location"]) == (302, page(record))
        assert said(answer) == ["Replayed 1 request: 1 stored; 1 turn stored."]
        record.refresh_from_db()
        assert (record.state, record.body, record.error) == ("stored", None, "")
        assert [turn.content for turn in ConversationMessage.objects.all()] == ["Hello"]
        event = AuditEvent.objects.get()
        assert (event.action, event.target_type, event.target_id) == (
            "intake.replayed",
            "intakerecord",
            record.pk,
        )
        assert (event.actor_name, event.details) == ("olga", {"state": ["failed", "stored"], "turns": 1})

    def test_again_there_is_nothing_left_and_no_event(self, owner, browser):
        record = failed(owner)
        browser.post(replay(record))
        answer = browser.post(replay(record))
        assert "Nothing of this waits to be replayed." in said(answer)
        assert AuditEvent.objects.count() == ConversationMessage.objects.count() == 1

    def test_what_fails_again_says_so(self, owner, browser, monkeypatch):
        record = failed(owner)
        monkeypatch.setattr("conversations.storage.extract", lambda *_, **__: 1 / 0)
        answer = browser.post(replay(record))
        assert said(answer) == ["Replayed 1 request: 1 failed; 0 turns stored."]
        record.refresh_from_db()
        assert (record.state, record.error) == ("failed", "ZeroDivisionError: division by zero")
        assert AuditEvent.objects.get().details == {"state": ["failed", "failed"], "turns": 0}

    def test_a_request_that_waits_is_stored_now(self, owner, browser):
        record = failed(owner, state="queued", error="")
        text = browser.get(page(record)).content.decode()
        assert "Store now" in text
        assert "Its job is gone; the worker takes it over within a minute" in text
        browser.post(replay(record))
        assert states() == ["stored"]

    def test_a_body_that_was_pruned_cannot_be_replayed(self, owner, browser):
        record = failed(owner, body=None)
        assert "data-key" not in browser.get(page(record)).content.decode()
        assert said(browser.post(replay(record))) == ["Nothing of this waits to be replayed."]

    @pytest.mark.parametrize(("role", "status"), [("reviewer", 403), ("administrator", 302)])
    def test_by_role(self, role, status, owner):
        record = failed(owner)
        member = browser_of(make_member(owner.organization, role))
        assert ("data-key" in member.get(page(record)).content.decode()) is (status == 302)
        assert member.post(replay(record)).status_code == status
        assert states() == ["stored" if status == 302 else "failed"]

    def test_a_stranger_gets_what_a_missing_request_gets(self, owner, stranger):
        record = failed(owner)
        elsewhere = browser_of(make_member(stranger.organization, "operator"))
        missing = elsewhere.post(replay(IntakeRecord(pk="intake-none")))
        foreign = elsewhere.post(replay(record))
        assert (foreign.status_code, foreign.content) == (404, missing.content)
        assert states() == ["failed"]

    def test_get_changes_nothing(self, owner, browser):
        assert browser.get(replay(failed(owner))).status_code == 405
        assert states() == ["failed"]


class TestMany:
    def test_a_selection_is_asked_about_with_its_number_and_then_replayed(self, owner, browser):
        chosen, other = failed(owner, "one"), failed(owner, "two", session_id="s-2")
        answer = browser.post(LIST, {"action": "replay_selected", "_selected_action": [chosen.pk]})
        assert answer.status_code == 302
        assert answer["Location"] == f"{MANY}?ids={chosen.pk}"
        asked = browser.get(answer["Location"]).content.decode()
        assert "Replay 1 request" in asked
        done = browser.post(answer["Location"])
        assert (done.status_code, done["Location"]) == (302, LIST)
        assert said(done) == ["Replayed 1 request: 1 stored; 1 turn stored."]
        other.refresh_from_db()
        assert other.state == "failed"

    def test_all_of_a_list_are_those_that_its_filters_show(self, owner, browser):
        failed(owner, "one"), failed(owner, "two", session_id="other")
        make_intake(owner)
        assert "2 requests are not fully stored" in browser.get(LIST).content.decode()
        address = f"{MANY}?state__exact=failed&q=oth"
        assert "Replay 1 request" in browser.get(address).content.decode()
        assert "Replay 2 requests" in browser.get(MANY).content.decode()
        done = browser.post(address)
        assert done["Location"] == f"{LIST}?state__exact=failed&q=oth"
        assert states() == ["failed", "stored", "stored"]

    def test_all_rows_of_a_list_selected_at_once_keep_its_filters(self, owner, browser):
        failed(owner)
        answer = browser.post(
            f"{LIST}?state__exact=failed",
            {"action": "replay_selected", "select_across": "1", "_selected_action": [failed(owner).pk]},
        )
        assert answer["Location"] == f"{MANY}?state__exact=failed"

    def test_in_the_order_of_their_acceptance(self, owner, browser):
        for text in ("one", "two", "three"):
            failed(owner, text)
        browser.post(MANY)
        assert list(ConversationMessage.objects.order_by("seq").values_list("content", flat=True)) == [
            "one",
            "two",
            "three",
        ]
        assert AuditEvent.objects.count() == 3

    def test_many_are_left_to_the_worker(self, owner, browser, operator, monkeypatch):
        monkeypatch.setattr(operating, "AT_ONCE", 1)
        monkeypatch.setattr(operating, "BATCH", 2)
        records = [failed(owner, text) for text in ("one", "two", "three")]
        assert said(browser.post(MANY)) == ["The worker replays 3 requests; the list shows how far it is."]
        assert states() == ["failed"] * 3
        jobs = ProcrastinateJob.objects.filter(task_name="conversations.replay").order_by("id")
        who = {"kind": "user", "id": str(operator.pk), "name": "olga"}
        assert [job.args for job in jobs] == [
            {"intake_ids": [record.pk for record in records[:2]], "actor": who},
            {"intake_ids": [records[2].pk], "actor": who},
        ]

    def test_a_worker_that_comes_twice_stores_once(self, owner):
        ids = [failed(owner).pk]
        assert replay_by_id(intake_ids=ids, actor=SYSTEM).turns == 1
        assert replay_by_id(intake_ids=ids, actor=SYSTEM).states.total() == 0
        assert ConversationMessage.objects.count() == AuditEvent.objects.count() == 1

    def test_a_reviewer_is_refused_each_way(self, owner):
        record = failed(owner)
        reviewer = browser_of(make_member(owner.organization, "reviewer"))
        text = reviewer.get(LIST).content.decode()
        assert "can be replayed" in text
        assert MANY not in text
        assert "replay_selected" not in text
        chosen = {"action": "replay_selected", "_selected_action": [record.pk]}
        for answer in (reviewer.post(LIST, chosen), reviewer.get(MANY), reviewer.post(MANY)):
            assert answer.status_code == 403
        assert states() == ["failed"]

    def test_a_member_of_two_organizations_replays_in_one(self, owner, stranger, operator, browser):
        Membership.objects.create(user=operator, organization=stranger.organization, role="reviewer")
        mine, theirs = failed(owner), failed(stranger)
        address = f"{MANY}?ids={mine.pk},{theirs.pk}"
        assert "Replay 1 request" in browser.get(address).content.decode()
        browser.post(address)
        theirs.refresh_from_db()
        assert theirs.state == "failed"

    def test_ids_of_a_stranger_replay_nothing(self, owner, stranger):
        record = failed(owner)
        elsewhere = browser_of(make_member(stranger.organization, "administrator"))
        address = f"{MANY}?ids={record.pk}"
        assert "Nothing to replay" in elsewhere.get(address).content.decode()
        assert said(elsewhere.post(address)) == ["Nothing of this waits to be replayed."]
        assert states() == ["failed"]

    def test_a_query_that_the_list_does_not_offer_leads_to_the_list(self, owner, browser):
        failed(owner)
        for query in ("body__regex=x", "ids=%00", "nowhere=1"):
            assert browser.get(f"{MANY}?{query}").status_code in (200, 302)
            assert browser.post(f"{MANY}?{query}").status_code == 302
        assert states() == ["failed"]

    def test_asking_costs_the_same_for_twenty(self, owner, browser, django_assert_num_queries):
        failed(owner)
        browser.get(MANY)
        with django_assert_num_queries(10):
            browser.get(MANY)
        for _ in range(19):
            failed(make_owner(owner.organization))
        with django_assert_num_queries(10):
            browser.get(MANY)


def test_the_service_leaves_no_event_where_nothing_is_to_be_replayed(owner):
    record = make_intake(owner)
    assert replay_request(record=record, actor=SYSTEM) == record
    assert AuditEvent.objects.count() == 0
