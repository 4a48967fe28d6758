"""The admin in the browser: what an edit shows, pages in their window, keys and their moment."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from conversations.tasks import store_turns
from mirix.tenants.owners import Owner
from skills.models import SkillRevision
from tests.browser.conftest import OpenScreen, path_of
from tests.factories import (
    make_content,
    make_experience,
    make_intake,
    make_member,
    make_owner,
    make_proposal,
    make_run,
    make_session,
    make_skill,
    make_superuser,
)

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "/admin/skills/skillrevision/"
CUT_OFF = """() => {
    let box = document.querySelector("#result_list");
    while (box && !["auto", "scroll"].includes(getComputedStyle(box).overflowX)) box = box.parentElement;
    return box ? box.scrollWidth - box.clientWidth : 0;
}"""
"""How many pixels of a list one has to scroll for."""


@pytest.fixture
def owner(transactional_db) -> Owner:

    return make_owner(user_id="alice")


def page_of(revision: SkillRevision) -> str:
    return f"{QUEUE}{revision.pk}/change/"


def proposal(owner: Owner, name: str, importance: float = 0.8, **fields) -> SkillRevision:
    session = make_session(
        owner,
        [
            {"role": "user", "content": "Pay my order, please."},
            {
                "role": "assistant",
                "content": 'I pay it.\n[call pay] {"card": "6"}',
                "tool_calls": [{"id": "1", "name": "pay", "arguments": {"card": "6"}}],
            },
            {
                "role": "tool",
                "content": "[pay] Error: card 6 is expired",
                "tool_name": "pay",
                "is_error": True,
            },
            {"role": "user", "content": "No, use the other card. It ends in 7."},
        ],
        state="distilled",
    )
    revision = make_proposal(owner, make_content(name=name), **fields)
    revision.experiences.add(
        make_experience(
            owner,
            session,
            title="Ask which card to use",
            importance=importance,
            turn=session.turns.get(seq=4),
            turn_seq=4,
        ),
        make_experience(
            owner,
            session,
            experience_type="worth_avoiding",
            signal_type="tool_error",
            title="Do not charge an expired card",
            quote="Error: card 6 is expired",
            importance=importance / 2,
            turn=session.turns.get(seq=3),
            turn_seq=3,
        ),
    )
    return revision


def test_an_edit_shows_what_comes_and_goes(owner, screen: OpenScreen):
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask for the card.\n2. Charge it."))
    edit = make_proposal(
        owner, make_content(name="pay", instructions="1. Ask for the stored card.\n2. Charge."), skill
    )
    edit.experiences.add(make_experience(owner))
    here = screen(make_member(owner.organization)).open(page_of(edit))
    shown = here.page.locator('[data-field="instructions"]')
    assert [text.strip() for text in shown.locator("ins").all_inner_texts()] == ["stored"]
    assert [text.strip() for text in shown.locator("del").all_inner_texts()] == ["it"]
    expect(here.page.get_by_text("Unchanged: name, kind")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_fit_their_window(scheme, width, transactional_db, screen: OpenScreen):
    owner = make_owner(user_id="alice.of.the.desk@example.com")
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask for the card.\n2. Charge it."))
    edit = make_proposal(
        owner,
        make_content(name="pay", instructions="1. Ask for the stored card, always.\n2. Charge."),
        skill,
        risk_flags=["single_failure"],
        rationale="Two sessions failed with the first card.",
    )
    edit.experiences.add(make_experience(owner))
    create = proposal(owner, "pay-with-the-right-card")
    session = create.experiences.first().session
    make_intake(
        owner,
        session_id="order-0e0c53f2-2b9c-4c0e-a1f3-64a6a2a7d0f1",
        report={"stored": 4, "skipped": [{"index": 0, "reason": "system message"}]},
    )
    run = make_run(owner)
    job = store_turns.defer(intake_id="intake-01a234e70485c6cf441a7f01a234e70485c6cf441a7f")
    here = screen(make_superuser(), width=width, color_scheme=scheme)
    for name, path in {
        "home": "/admin/",
        "proposals": QUEUE,
        "create": page_of(create),
        "edit": page_of(edit),
        "skills": "/admin/skills/skill/",
        "skill": f"/admin/skills/skill/{skill.pk}/change/",
        "experiences": "/admin/skills/skillexperience/",
        "sessions": "/admin/conversations/session/",
        "session": f"/admin/conversations/session/{session.pk}/change/",
        "intake": "/admin/conversations/intakerecord/",
        "run": f"/admin/skills/autodreamrun/{run.pk}/change/",
        "organizations": "/admin/tenants/organization/",
        "keys": "/admin/tenants/apikey/",
        "logins": "/admin/auth/user/",
        "jobs": "/admin/procrastinate/procrastinatejob/",
        "job": f"/admin/procrastinate/procrastinatejob/{job}/change/",
    }.items():
        here.open(path)
        here.keep(f"{name}-{scheme}-{width}")
        assert here.overflow() <= 0, path
        assert here.page.evaluate(CUT_OFF) == 0, path


def test_a_text_that_turns_around_is_shown_in_the_order_it_is_stored(owner, screen: OpenScreen):
    hiding = proposal(owner, "pay", rationale="See \u202egnihtemos.")
    here = screen(make_member(owner.organization)).open(page_of(hiding))
    lead = here.page.locator(".mx-lead")
    assert lead.inner_text() == "See \\u202egnihtemos."
    chip = lead.locator(".mx-hidden").bounding_box()
    # The letters after the chip run from left to right: the first stands left of the last.
    first, last = lead.evaluate(
        """lead => [0, 8].map(at => {
            const range = document.createRange();
            range.setStart(lead.lastChild, at);
            range.setEnd(lead.lastChild, at + 1);
            return range.getBoundingClientRect().left;
        })"""
    )
    assert chip["x"] < first < last


def test_a_key_decides_only_what_was_in_sight_for_a_moment(owner, screen: OpenScreen):
    first, second, third = (
        proposal(owner, name, weight) for name, weight in (("1", 0.9), ("2", 0.7), ("3", 0.5))
    )
    here = screen(make_member(owner.organization))
    # The clock is ours: the page is as old as it is told to be.
    here.page.clock.install()
    here.open(page_of(first))
    arming = here.page.locator(".mx-btn--arming")
    here.page.clock.run_for(1600)
    expect(arming).to_have_count(0)
    here.page.keyboard.press("a")
    here.page.keyboard.press("a")  # hit twice: nobody answered what it asks
    assert path_of(here.page.url) == page_of(first)
    here.page.clock.run_for(1600)
    here.page.keyboard.press("a")
    here.page.wait_for_url(f"**{page_of(second)}")
    expect(arming.first).to_have_text("Undo u")
    expect(arming.last).to_have_text("Approve and publish 0.1.0 a")
    for _ in range(3):  # each press that comes too early starts the moment over
        here.page.clock.run_for(700)
        here.page.keyboard.press("a")
    here.page.clock.run_for(1400)
    expect(arming).to_have_count(2)
    assert path_of(here.page.url) == page_of(second)
    assert set(SkillRevision.objects.filter(state="proposed")) == {second, third}
    here.page.clock.run_for(200)
    here.page.keyboard.press("a")
    here.page.clock.run_for(500)
    here.page.keyboard.press("a")
    here.page.wait_for_url(f"**{page_of(third)}")
    here.page.get_by_role("button", name="Approve and publish").click()  # the mouse need not wait
    expect(here.page.get_by_text("Nothing waits for you")).to_be_visible()
    assert not SkillRevision.objects.filter(state="proposed").exists()
