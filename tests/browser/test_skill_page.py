"""The page of a skill in a browser: read, followed to where it comes from, exported; wide and narrow."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import Skill
from skills.review.publishing import approve, reject
from tests.browser.conftest import OpenScreen, path_of
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_search,
    make_session,
)

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<img src=x onerror=alert(1)></foreignObject></svg>\u202e"
TEXT = make_content(
    name="refund-a-paid-order",
    description="Use when a customer wants the money of a paid order back.",
    instructions=f"1. Ask.\n2. Refund it to the **card**.\n\n{HOSTILE} [a](javascript:alert(2))",
)


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="desk-7")


@pytest.fixture
def skill(owner) -> Skill:
    """A skill of three versions, a rejected and a waiting one; of each something taught."""
    skill = None
    for version in range(5):
        text = replace(TEXT, description=f"{TEXT.description} Try {version} times.") if version else TEXT
        made = make_proposal(owner, text, skill, rationale=f"{HOSTILE} went wrong.")
        for number in range(version + 1):
            session = make_session(owner, [{"role": "user", "content": "No, use the other card."}])
            experience = make_experience(owner, session, title=f"Ask which card to use {HOSTILE}")
            experience.quarantined = version == 4 and not number
            experience.save()
            made.experiences.add(experience)
        if version == 2:
            reject(revision=made, reason=f"Not true {HOSTILE}")
        elif version < 4:
            skill = approve(revision=made)
    assert skill is not None
    for days in (0, 0, 1, 4, 5, 5, 5, 11, 20):
        make_search(owner, [skill], created_at=timezone.now() - timedelta(days=days))
    return skill


def test_the_page_of_a_skill(screen: OpenScreen, owner, skill):
    rita = make_member(owner.organization, "reviewer", "rita")
    address = f"/admin/skills/skill/{skill.pk}/change/"
    for scheme in ("light", "dark"):
        here = screen(rita, width=1440, color_scheme=scheme).open(address)
        for width in (1440, 390):
            here.page.set_viewport_size({"width": width, "height": 900})
            assert here.barriers() == []
            assert here.overflow() <= 0
            here.keep(f"skill-page-{width}-{scheme}")

    drawing = here.page.locator(".mx-lineage__drawing")
    assert drawing.locator("foreignObject a.mx-node").count() == drawing.locator("a").count()
    first = drawing.locator("a.mx-node--session").first
    there = first.get_attribute("href")
    first.focus()
    here.page.keyboard.press("Enter")
    here.page.wait_for_url(f"**{there}")
    here.open(address)
    here.page.locator("summary", has_text="The same as a list").click()
    assert here.page.locator(".mx-tree > li > ul > li").count() == 10
    with here.page.expect_download() as download:
        here.page.get_by_role("link", name="SKILL.md", exact=True).click()
    assert download.value.suggested_filename == "SKILL.md"
    here.page.get_by_role("link", name="Roll back to it").first.click()
    assert path_of(here.page.url) == f"/admin/skills/skill/{skill.pk}/rollback/"
    assert Content.of(Skill.objects.get()) == Content.of(skill)
