"""What the admin says of texts that went after their time: how many, when, and what stays."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client as Browser
from django.urls import reverse

from conversations.models import IntakeRecord, Session
from conversations.retention import prune
from skills.models import DistillationAttempt, SkillExperience
from tests.factories import make_attempt, make_experience, make_intake, make_member, make_run, make_session

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def session(owner) -> Session:
    """A session of 150 turns that was learned from on 1 March and pruned on 5 April; two came after."""
    with time_machine.travel(START, tick=False) as clock:
        session = make_session(
            owner,
            [{"role": "user", "content": f"No, use the other card. {n}"} for n in range(1, 153)],
            state="open",
            distilled_through=150,
            distilled_at=START,
            first_turn_at=START,
            session_id="order-7",
        )
        make_experience(owner, session)
        make_attempt(make_run(owner), session, last_seq=150, raw_reply="what a model said")
        make_intake(owner, state="failed", body={"messages": ["x"]}, error="RuntimeError: x")
        clock.move_to(START + timedelta(days=35))
        prune(organization=owner.organization)
    return session


@pytest.fixture
def read(owner):
    """The text of a page, as a reviewer reads it."""
    browser = Browser()
    browser.force_login(make_member(owner.organization, "reviewer"))

    def read(name: str, row, query: str = "") -> str:
        response = browser.get(reverse(f"admin:{name}_change", args=[row.pk]) + query)
        assert response.status_code == 200
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))

    return read


def test_a_transcript_begins_where_turns_are_left_and_says_what_went(session, read):
    text = read("conversations_session", session)
    assert "150 of 152 turns were pruned after their time, last on April 5, 2026" in text
    assert "No, use the other card. 151" in text
    assert "Page 2 of 2" in text
    assert "Earlier turns" not in text
    assert "They were pruned after their time." in read("conversations_session", session, "?page=1")


def test_a_session_without_turns_says_so(owner, session, read):
    session.refresh_from_db()
    Session.objects.update(distilled_through=152, distilled_at=START)
    with time_machine.travel(START + timedelta(days=36), tick=False):
        prune(organization=owner.organization)
    text = read("conversations_session", session)
    assert "All 152 turns were pruned after their time, last on April 6, 2026" in text
    assert SkillExperience.objects.get().title in text


def test_evidence_says_who_spoke_and_when_the_turn_went(session, read):
    text = read("skills_skillexperience", SkillExperience.objects.get())
    assert "User, turn 1. The turn was pruned on April 5, 2026 after its time" in text
    assert " use the other card " in text


def test_an_attempt_says_when_its_reply_went(session, read):
    text = read("skills_distillationattempt", DistillationAttempt.objects.get())
    assert "What the distiller answered was pruned on April 5, 2026" in text


def test_a_request_says_that_it_cannot_be_replayed_any_more(session, owner, read):
    text = read("conversations_intakerecord", IntakeRecord.objects.get())
    assert "pruned on April 5, 2026" in text
    assert "it cannot be replayed any more" in text
    assert "RuntimeError: the details were dropped with the body after their time" in text
