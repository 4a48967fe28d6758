"""Deciding proposals in the browser: by mouse, by keys alone, beside others, with an edit, and taken back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from mirix.tenants.owners import Owner
from skills.models import ReviewDecision, Skill, SkillRevision
from tests.browser.conftest import OpenScreen, path_of
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "/admin/skills/skillrevision/"
NOT_BLANK = "Boolean(document.activeElement && document.activeElement !== document.body)"


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="alice")


def page_of(revision: SkillRevision) -> str:
    return f"{QUEUE}{revision.pk}/change/"


def waiting(owner: Owner, name: str, text: str, importance: float, skill: Skill | None = None, **fields):
    turns = [
        {"role": "user", "content": f"Do {name}, please."},
        {"role": "tool", "tool_name": name, "content": "Error: not like this", "is_error": True},
        {"role": "user", "content": "No, use the other card. It ends in 7."},
    ]
    session = make_session(owner, turns, state="distilled")
    made = make_proposal(
        owner, make_content(name=name, description=f"Use for {text[:60]}", instructions=text), skill, **fields
    )
    made.experiences.add(
        make_experience(
            owner,
            session,
            importance=importance,
            turn=session.turns.get(seq=3),
            turn_seq=3,
            model_credibility=0.5,
        )
    )
    return made


@pytest.fixture
def three(owner) -> list[SkillRevision]:
    return [
        waiting(owner, "pay", "1. Ask which card to charge.\n2. Charge it.", 0.9),
        waiting(owner, "ship", "1. Weigh the parcel, print a label.\n2. Call the van.", 0.6),
        waiting(owner, "greet", "1. Say hello in the language of the caller.", 0.3),
    ]


def test_by_mouse_an_approval_is_taken_back(owner, three, screen: OpenScreen):
    here = screen(make_member(owner.organization)).open(f"{QUEUE}?risk=none")
    here.page.get_by_role("link", name="pay").click()
    expect(here.page.get_by_text("Proposal 1 of 3 in this filter")).to_be_visible()
    here.page.locator("summary", has_text="Why 90 %").click()
    expect(here.page.get_by_text("A user's critique counts 80 to 100 %")).to_be_visible()
    expect(here.page.get_by_text("Tool, turn 2, failed")).to_be_visible()
    here.page.locator("summary", has_text="Source").click()
    expect(here.page.locator(".mx-source pre")).to_contain_text("1. Ask which card to charge.")
    here.page.get_by_role("button", name="Approve and publish 0.1.0").click()
    here.page.wait_for_url(f"**{page_of(three[1])}?*")
    expect(here.page.get_by_text("Published pay 0.1.0.")).to_be_visible()
    here.keep("undo")
    here.page.get_by_role("button", name="Undo").click()
    expect(here.page.get_by_text("is archived")).to_be_visible()
    assert path_of(here.page.url) == page_of(three[0])
    assert Skill.objects.get().status == "archived"


def test_by_keys_alone(owner, three, screen: OpenScreen):
    here = screen(make_member(owner.organization)).open(page_of(three[0]))
    keys, arming = here.page.keyboard, here.page.locator(".mx-btn--arming")
    keys.press("?")
    expect(here.page.get_by_role("dialog", name="Keys")).to_be_visible()
    keys.press("j")  # nothing happens behind it
    here.keep("keys")
    assert here.barriers() == []
    keys.press("Escape")
    expect(here.page.get_by_role("dialog")).to_have_count(0)
    assert path_of(here.page.url) == page_of(three[0])
    expect(arming).to_have_count(0)
    keys.press("Control+a")
    assert path_of(here.page.url) == page_of(three[0])
    keys.press("a")  # nothing to watch: once is enough, and it can be taken back
    here.page.wait_for_url(f"**{page_of(three[1])}")
    expect(arming).to_have_count(0)
    keys.press("u")
    here.page.wait_for_url(f"**{page_of(three[0])}")
    keys.press("j")
    here.page.wait_for_url(f"**{page_of(three[1])}")
    keys.press("r")
    keys.press("ArrowDown")
    assert here.page.evaluate(NOT_BLANK)
    keys.press("Enter")
    here.page.wait_for_url(f"**{page_of(three[2])}")
    keys.press("e")
    here.page.wait_for_url("**/edit/")
    here.page.go_back()
    states = dict(SkillRevision.objects.filter(action="create").values_list("name", "state"))
    assert states == {"pay": "published", "ship": "rejected", "greet": "proposed"}
    assert ReviewDecision.objects.get(decision="reject").reason == "Its evidence does not carry it"
    assert Skill.objects.get().status == "archived"


def test_what_is_to_be_watched_is_asked_for_twice(owner, screen: OpenScreen):
    text = "1. Run `pay --force`.\n2. Send it to https://collect.io/in."
    risky = waiting(
        owner, "pay", text, 0.5, risk_flags=["new_address", "unsupported_steps"], unsupported=["pay --force"]
    )
    here = screen(make_member(owner.organization)).open(page_of(risky))
    expect(here.page.locator("code mark.mx-doubt")).to_contain_text("pay --force")
    expect(here.page.locator(".mx-watching")).to_contain_text("https://collect.io/in")
    expect(here.page.locator(".mx-btn--arming")).to_have_count(0)
    here.keep("watch")
    assert here.barriers() == []
    here.page.keyboard.press("a")
    expect(here.page.get_by_role("status")).to_contain_text("Press a once more")
    here.page.keyboard.press("Escape")
    expect(here.page.get_by_role("status")).to_be_empty()
    assert not Skill.objects.exists()


def test_a_page_tells_that_somebody_else_decided_and_keeps_what_was_typed(owner, three, screen: OpenScreen):
    rita, bob = (screen(make_member(owner.organization, username=name)) for name in ("rita", "bob"))
    rita.page.clock.install()
    rita.open(page_of(three[0]))
    rita.page.keyboard.press("r")
    rita.page.get_by_label("In your words").fill("Half a sent")
    bob.open(page_of(three[0])).page.get_by_role("button", name="Approve").click()
    expect(bob.page.get_by_text("Published pay 0.1.0.")).to_be_visible()
    note = rita.page.locator("#overtaken")
    expect(note).to_be_hidden()
    with rita.page.expect_response("**/state/"):
        rita.page.clock.run_for(8100)
    expect(note).to_contain_text("bob approved this at")
    rita.keep("overtaken")
    expect(rita.page.get_by_role("button", name="Approve")).to_be_disabled()
    assert rita.page.get_by_label("In your words").input_value() == "Half a sent"
    note.get_by_role("link", name="go on to the next").click()
    rita.page.wait_for_url(f"**{page_of(three[1])}")


@pytest.mark.parametrize(("width", "scheme"), [(1920, "light"), (390, "dark")])
def test_both_ways_to_show_an_edit_fit_and_the_choice_is_remembered(width, scheme, owner, screen: OpenScreen):
    text = "".join(
        f"{number}. Step {number} of the work, as it was always done.\n" for number in range(1, 31)
    )
    skill = make_skill(owner, make_content(name="work", instructions=text))
    after = text.replace(
        "Step 15 of the work", "Step 15, and `a_name_that_is_far_too_long_to_break_anywhere_at_all`"
    )
    edit = waiting(owner, "work", after, 0.5, skill)
    here = screen(make_member(owner.organization), width=width, color_scheme=scheme).open(page_of(edit))
    here.keep(f"inline-{width}")
    here.page.get_by_role("link", name="Side by side").click()
    diff = here.page.locator('.mx-diff--side[data-field="instructions"]')
    expect(diff).to_be_visible()
    diff.locator("summary", has_text="lines unchanged").first.click()
    expect(here.page.get_by_text("Step 2 of the work").first).to_be_attached()
    here.keep(f"side-{width}")
    expect(here.page.locator(".mx-btn--arming")).to_have_count(0)
    assert here.barriers() == []
    assert here.overflow() <= 0
    here.open(page_of(edit))
    expect(here.page.locator(".mx-diff--side").first).to_be_attached()
    bar = here.page.locator(".mx-decide")
    expect(bar).to_be_in_viewport()
    here.page.locator("summary", has_text="Reject").click()
    expect(here.page.get_by_label("In your words")).to_be_in_viewport()
    assert here.overflow() <= 0


def test_all_of_it_works_without_a_script(owner, three, screen: OpenScreen):
    here = screen(make_member(owner.organization), java_script_enabled=False).open(page_of(three[0]))
    here.page.locator("summary", has_text="Reject").click()
    here.page.get_by_label("It holds for one case alone").check()
    here.page.get_by_label("In your words").fill("Card 6.")
    here.page.get_by_role("button", name="Reject").click()
    here.page.wait_for_url(f"**{page_of(three[1])}")
    here.page.get_by_role("button", name="Approve and publish 0.1.0").click()
    here.page.get_by_role("button", name="Undo").click()
    assert path_of(here.page.url) == page_of(three[1])
    assert Skill.objects.get().status == "archived"
    assert ReviewDecision.objects.get(decision="reject").reason == "It holds for one case alone: Card 6."
