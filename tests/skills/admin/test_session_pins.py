"""The margin of a transcript: what was learned at a turn, and what came of that."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
)
from tests.mirix.admin.test_pages import as_user, page

pytestmark = pytest.mark.django_db


def test_a_pin_leads_to_the_skill_and_to_the_proposal_that_came_of_it(owner):
    turns = [{"role": "user", "content": "No, use the other card. And say so."}] * 2
    session = make_session(owner, turns, state="distilled")
    skill = make_skill(owner, make_content(name="pay-by-card"))
    waiting = make_proposal(owner, make_content(name="say-so"))
    rejected = make_proposal(owner, make_content(name="say-nothing"), state="rejected")
    both, alone = (make_experience(owner, session, turn_seq=seq) for seq in (1, 2))
    for revision in (skill.current_revision, waiting, rejected):
        revision.experiences.add(both)

    browser = as_user(make_member(owner.organization))
    text = browser.get(reverse("admin:conversations_session_change", args=[session.pk])).content.decode()

    first, second = text.split('id="turn-2"')
    assert f'<a href="{page("skills.skill", skill.pk)}">pay-by-card</a>' in first
    assert f'<a href="{page("skills.skillrevision", waiting.pk)}">say-so (proposed)</a>' in first
    assert "<mark>use the other card</mark>" in first
    assert page("skills.skillexperience", alone.pk) in second
    assert "went into" not in second
    assert "say-nothing" not in text
