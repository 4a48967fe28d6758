"""What a model or a caller hid in a text stands open on every page that a reviewer reads."""

from __future__ import annotations

import pytest
from django.test import Client as Browser

from mirix.text import HIDDEN
from skills.models import SkillRevision
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
HIDING = "\u202egnihtemos"
SHOWN = '<span class="mx-hidden" title="U+202E RIGHT-TO-LEFT OVERRIDE">\\u202e</span>gnihtemos'


@pytest.fixture
def edit(owner) -> SkillRevision:
    """An edit in which every text hides something, with its evidence."""
    turns = [
        {"role": "user", "content": f"Pay {HIDING} now."},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "pay", "arguments": {"a": HIDING}}]},
    ]
    session = make_session(owner, turns, state="distilled", filter_tags={HIDING: HIDING})
    skill = make_skill(owner, make_content(name="pay", instructions="Pay."))
    edit = make_proposal(
        owner,
        make_content(
            name="pay",
            description=f"About {HIDING}.",
            instructions=f"Pay {HIDING}.",
            filter_tags={"team": HIDING, "more": [HIDING]},
        ),
        skill,
        rationale=f"Because of {HIDING}.",
    )
    edit.experiences.add(
        make_experience(
            owner,
            session,
            title=f"Mind {HIDING}",
            quote=f"Pay {HIDING}",
            turn=session.turns.get(seq=1),
            turn_seq=1,
        )
    )
    return edit


def test_no_page_hides_a_character(edit: SkillRevision, owner):
    browser = Browser()
    browser.force_login(make_member(owner.organization, "reviewer"))
    experience = edit.experiences.get()
    for path in (
        "",
        "skills/skillrevision/",
        f"skills/skillrevision/{edit.pk}/change/",
        "skills/skillexperience/",
        f"skills/skillexperience/{experience.pk}/change/",
        f"conversations/session/{experience.session_id}/change/",
    ):
        page = browser.get(f"/admin/{path}").content.decode()
        assert SHOWN in page, path
        assert not HIDDEN.search(page), path


def test_filter_tags_diff_evidence_and_transcript(edit: SkillRevision, owner):
    browser = Browser()
    browser.force_login(make_member(owner.organization, "reviewer"))
    proposal = browser.get(f"/admin/skills/skillrevision/{edit.pk}/change/").content.decode()
    session = edit.experiences.get().session_id
    transcript = browser.get(f"/admin/conversations/session/{session}/change/").content.decode()
    assert f"<mark>Pay {SHOWN}</mark>" in proposal
    assert f"Because of {SHOWN}." in proposal
    assert f"<bdi>{SHOWN}</bdi>: <bdi>{SHOWN}</bdi>" in transcript
    assert f"<mark>Pay {SHOWN}</mark> now." in transcript
    assert f"&quot;a&quot;: &quot;{SHOWN}&quot;" in transcript
