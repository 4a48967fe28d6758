"""About how many tokens an evolution may take: rather too many, and nobody is asked."""

from __future__ import annotations

import pytest

from mirix.llm.tokens import about_tokens
from skills.evolution.curator import evolve
from skills.evolution.estimating import about_proposing
from skills.models import RunTrigger
from skills.runs import claim
from tests.endpoints import ChatAnswer
from tests.factories import make_content, make_experience, make_skill

pytestmark = pytest.mark.django_db


def test_rules_take_none(owner):
    make_experience(owner)
    assert about_proposing(owner=owner, sessions=9) == 0


def test_with_nothing_to_ask_it_is_nothing(owner, chat_server):
    make_experience(owner, verified=False, credibility=0.1)
    assert about_proposing(owner=owner) == 0


def test_each_topic_and_each_session_to_come_is_a_question(owner, stranger, chat_server):
    make_experience(stranger, topic="tool:pay")
    session = about_proposing(owner=owner, sessions=1)
    assert about_proposing(owner=owner, sessions=3) == 3 * session > 0
    make_experience(owner, topic="tool:pay")
    one = about_proposing(owner=owner)
    make_experience(owner, topic="tool:send")
    assert 1.5 * one < about_proposing(owner=owner) < 2.5 * one
    assert about_proposing(owner=owner, sessions=1) == about_proposing(owner=owner) + session
    assert chat_server.calls == 0


def test_it_is_rather_more_than_what_is_asked(owner, chat_server):
    make_skill(owner, make_content(name="pay", instructions="Pay it.\n" * 500))
    for number in range(10):
        make_skill(owner, make_content(name=f"other-{number}"))
    make_experience(owner, topic="tool:pay")
    told = about_proposing(owner=owner)
    chat_server.answer = lambda request: ChatAnswer(text="[]")
    evolve(owner=owner, claim=claim(owner=owner, trigger=RunTrigger.COMMAND))
    (request,) = chat_server.requests
    assert about_tokens(request.user) < told
