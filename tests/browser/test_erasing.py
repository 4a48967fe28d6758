"""The pages that erase for good, and what is left to see afterwards."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from mirix.tenants.models import ErasureReceipt
from mirix.tenants.owners import Owner
from skills.models import Skill, SkillRevision
from skills.review.merges import propose_merge
from skills.review.publishing import approve
from tests.browser.conftest import OpenScreen
from tests.factories import (
    make_client,
    make_content,
    make_experience,
    make_member,
    make_organization,
    make_owner,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(make_organization("Acme"), user_id="desk-7@example.org")


def test_an_end_user(owner, screen: OpenScreen):
    make_session(owner, [{"role": "user", "content": "Mine."}])
    here = screen(make_member(owner.organization, "administrator", "ada"))
    here.open(f"/admin/tenants/enduser/{owner.end_user.pk}/change/")
    here.keep_in_every_look("erase-enduser-page")
    here.page.get_by_role("link", name="Erase…").click()
    here.keep_in_every_look("erase-enduser")
    assert here.barriers() == []

    here.page.get_by_label("Type the name or the id to confirm").fill("desk-8@example.org")
    here.page.get_by_role("button", name="Erase for good").click()
    expect(here.page.get_by_text("That is another name.")).to_be_visible()
    here.keep_in_every_look("erase-enduser-refused")
    here.forgive(400, f"/admin/tenants/enduser/{owner.end_user.pk}/erase/")

    here.page.get_by_label("Type the name or the id to confirm").fill("desk-7@example.org")
    here.page.get_by_role("button", name="Erase for good").click()
    expect(here.page.get_by_text("is the receipt.")).to_be_visible()
    here.keep_in_every_look("erased-enduser")
    here.open(f"/admin/tenants/erasurereceipt/{ErasureReceipt.objects.get().pk}/change/")
    here.keep_in_every_look("erasure-receipt")
    assert (
        here.page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.mx-scroll'))") == 0
    )
    assert here.barriers() == []
    assert "desk-7" not in here.text()


def test_a_client(owner, screen: OpenScreen):
    client = make_client(owner.organization, "helpdesk")
    make_session(owner, [{"role": "user", "content": "Mine."}], client)
    here = screen(make_member(owner.organization, "administrator", "ada"))
    here.open(f"/admin/tenants/client/{client.pk}/change/")
    here.keep_in_every_look("erase-client-page")
    here.page.get_by_role("link", name="Erase what it sent…").click()
    here.keep_in_every_look("erase-client")
    assert here.barriers() == []

    here.page.get_by_label("Type the name or the id to confirm").fill("helpdesk")
    here.page.get_by_role("button", name="Erase for good").click()

    expect(here.page.get_by_text("is the receipt.")).to_be_visible()
    here.keep_in_every_look("erased-client")


def test_a_skill_that_was_merged_into_another_one(owner, screen: OpenScreen):
    ada = make_member(owner.organization, "administrator", "ada")
    going = make_skill(owner, make_content(name="greet-people", instructions="1. Greet people."))
    staying = make_skill(owner, make_content(name="pay-an-order", instructions="1. Ask which card."))
    mine = make_experience(owner, status="consumed")
    assert staying.current_revision
    staying.current_revision.experiences.set([mine])
    approve(revision=propose_merge(source=going, target=staying), decided_by=ada)
    here = screen(ada)
    here.open(f"/admin/skills/skill/{going.pk}/change/")
    here.page.get_by_role("link", name="Erase…").click()
    here.keep_in_every_look("erase-skill")
    assert here.barriers() == []

    here.page.get_by_label("Type the name or the id to confirm").fill("greet-people")
    here.page.get_by_role("button", name="Erase for good").click()
    expect(here.page.get_by_text("is the receipt.")).to_be_visible()
    here.keep_in_every_look("erased-skill")

    here.open(f"/admin/skills/skill/{staying.pk}/change/")
    here.keep_in_every_look("erased-skill-other")
    assert "greet" not in here.text()
    here.open(f"/admin/skills/skillrevision/{SkillRevision.objects.get(state='proposed').pk}/change/")
    expect(here.page.get_by_text("A skill that was merged into it was erased").first).to_be_visible()
    here.keep_in_every_look("erased-skill-proposal")
    assert here.barriers() == []
    with here.page.expect_navigation():
        here.page.get_by_role("button", name="Approve and publish").click()
    assert Skill.objects.get().status == "active"
