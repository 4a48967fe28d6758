"""A skill's past on the screen: two editors, a comparison, a roll back; wide and narrow, light and dark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import Skill
from skills.review.merges import propose_merge
from skills.review.publishing import approve
from skills.superseding import supersede
from tests.browser.conftest import OpenScreen
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_session,
)

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = make_content(
    name="refund-a-paid-order",
    description="Use when a customer wants the money of a paid order back.",
    instructions="1. Ask for the number of the order.\n2. Look up how it was paid.\n3. Refund it to the card."
    "\n\n## Pitfalls\n- A voucher is refused for orders that were paid by card.",
    triggers=["refund my order", "money back"],
    examples=[{"input": "Refund order 4711", "output": "refund_order(4711, method=card)"}],
)


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="desk-7")


@pytest.fixture
def skill(owner) -> Skill:
    first = approve(revision=make_proposal(owner, TEXT))
    edited = replace(TEXT, instructions=TEXT.instructions.replace("2. Look", "2. Log in, then look"))
    return approve(revision=make_proposal(owner, edited, first))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_two_people_edit_one_skill(screen: OpenScreen, owner, skill, width, scheme):
    rita = make_member(owner.organization, "reviewer", "rita")
    anna = make_member(owner.organization, "administrator", "anna")
    mine = screen(rita, width=width, color_scheme=scheme)
    theirs = screen(anna, width=width, color_scheme=scheme)
    kind = f"{width}-{scheme}"
    path = f"/admin/skills/skill/{skill.pk}"

    mine.open(f"{path}/change/")
    assert mine.overflow() <= 0
    mine.keep(f"history-skill-{kind}")
    mine.page.get_by_role("link", name="Edit", exact=True).click()
    assert mine.overflow() <= 0
    mine.keep(f"history-edit-{kind}")

    theirs.open(f"{path}/edit/")
    text = skill.instructions.replace("Refund it to the card", "Refund it to the same card")
    theirs.page.get_by_label("Instructions").fill(text)
    theirs.page.get_by_role("button", name="Publish").click()
    assert "Published refund-a-paid-order 0.1.2." in theirs.text()

    mine.page.get_by_label("Instructions").fill(text.replace("the same card", "the first card"))
    mine.page.get_by_label("Description").fill("Use when somebody wants money back.")
    mine.page.get_by_role("button", name="Publish").click()
    assert "was published anew as 0.1.2 while you wrote" in mine.text()
    assert mine.overflow() <= 0
    mine.keep(f"history-conflict-{kind}")
    conflicts = [fault for fault in mine.faults if "409" in fault]
    mine.faults[:] = [fault for fault in mine.faults if fault not in conflicts]
    assert conflicts
    mine.page.get_by_label("Instructions").fill(text.replace("the same card", "the very same card"))
    mine.page.get_by_role("button", name="Publish").click()
    assert "Published refund-a-paid-order 0.1.3." in mine.text()

    mine.page.locator("select[name=from]").select_option(index=3)
    mine.page.get_by_role("button", name="Compare").click()
    assert "0.1.0 → 0.1.3" in mine.text()
    assert mine.overflow() <= 0
    mine.keep(f"history-compare-{kind}")
    mine.page.get_by_role("link", name="Roll back to 0.1.0").click()
    assert mine.overflow() <= 0
    mine.keep(f"history-rollback-{kind}")
    mine.page.get_by_label("Why").fill("The old one was right.")
    mine.page.get_by_role("button", name="Roll back to 0.1.0").click()
    assert "refund-a-paid-order says what 0.1.0 said." in mine.text()
    assert Content.of(Skill.objects.get()) == TEXT

    mine.page.get_by_role("link", name="Archive", exact=True).click()
    mine.keep(f"history-archive-{kind}")
    mine.page.get_by_label("Why").fill("Nobody asks for it.")
    mine.page.get_by_role("button", name="Archive").click()
    assert "refund-a-paid-order is archived." in mine.text()
    assert Skill.objects.get().status == "archived"
    mine.keep(f"history-after-{kind}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_what_waits_or_is_superseded_says_so(screen: OpenScreen, owner, skill, width, scheme):
    other = approve(revision=make_proposal(owner, replace(TEXT, name="return-a-paid-order-to-its-card")))
    merge = propose_merge(source=other, target=skill)
    session = make_session(owner, [{"role": "user", "content": "No, use the other card."}] * 3)
    titles = ("Ask how the order was paid before anything is given back", "Ask how it was paid")
    old, new = (
        make_experience(owner, session, title=title, turn_seq=seq) for seq, title in enumerate(titles, 1)
    )
    supersede(experience=old, by=new)
    rita = screen(make_member(owner.organization, "reviewer", "rita"), width=width, color_scheme=scheme)
    kind = f"{width}-{scheme}"

    rita.open(f"/admin/skills/skillexperience/{old.pk}/change/")
    assert rita.overflow() <= 0
    rita.keep(f"history-superseded-{kind}")
    rita.page.get_by_role("link", name=new.title, exact=True).click()
    assert rita.page.get_by_role("link", name=old.title, exact=True).is_visible()

    rita.open(f"/admin/skills/skill/{skill.pk}/edit/")
    assert rita.overflow() <= 0
    rita.keep(f"history-edit-waiting-{kind}")
    rita.page.get_by_role("link", name="Edit that proposal").click()
    assert rita.page.url.endswith(f"/admin/skills/skillrevision/{merge.pk}/edit/")
