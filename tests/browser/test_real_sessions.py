"""The main job on real sessions of an airline desk: imported, dreamt over, reviewed in the browser, found."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from playwright.sync_api import expect
from rest_framework.test import APIClient

from mirix.tenants.models import Client, Organization
from skills.models import Skill, SkillRevision
from skills.review.publishing import approve
from tests.browser.conftest import OpenScreen
from tests.data import shared
from tests.factories import make_key, make_member

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "What can I do when the gift card balance is not enough to change a flight?"


@pytest.fixture
def organization(transactional_db, capsys) -> Organization:
    """The demo organization after an import and a dream; its proposals wait."""
    file = shared("traj/tau_airline_dev.jsonl")
    call_command("import_sessions", str(file), organization="demo", user="tau")
    call_command("auto_dream", organization="demo", user="tau", last_n_sessions=50)
    capsys.readouterr()
    return Organization.objects.get(name="demo")


def found(organization: Organization) -> dict[str, dict[str, Any]]:
    """What the question finds over the API, by name, the best first."""
    client = Client.objects.filter(organization=organization).first()
    assert client is not None
    api = APIClient(headers={"X-API-Key": make_key(client, "read")})
    response = api.get("/memory/search", {"query": QUESTION, "user_id": "tau"})
    assert response.status_code == 200, response.content
    return {row["name"]: row for row in response.json()["results"]}


def test_a_proposal_from_real_sessions_is_reviewed_and_then_found(organization, screen: OpenScreen):
    make_member(organization, "reviewer", "rita", password="a long pass phrase")
    proposal = SkillRevision.objects.get(state="proposed", name="update-reservation-flights")
    for other in SkillRevision.objects.filter(state="proposed").exclude(pk=proposal.pk):
        approve(revision=other)  # so that to be found first means something
    assert proposal.name not in found(organization)

    here = screen().open("/admin/")
    here.page.get_by_label("Username").fill("rita")
    here.page.get_by_label("Password").fill("a long pass phrase")
    here.page.get_by_role("button", name="Log in").click()
    here.page.get_by_role("link", name="update-reservation-flights").click()
    expect(here.page.get_by_role("heading", name="What it says")).to_be_visible()
    expect(here.page.locator(".mx-prose", has_text="gift card balance is not enough").first).to_be_visible()
    here.keep("real-proposal")

    evidence = here.page.locator(".mx-evidence", has=here.page.locator("mark", has_text="Error: ")).first
    quote = evidence.locator("mark").inner_text()
    link = evidence.get_by_role("link", name="Read it in session")
    anchor = str(link.get_attribute("href")).partition("#")[2]
    link.click()
    turn = here.page.locator(f"#{anchor}")
    expect(turn).to_be_in_viewport()
    assert quote in turn.locator("mark").all_inner_texts()
    here.keep("real-turn")
    here.page.go_back()

    here.page.get_by_role("button", name="Approve and publish 0.1.0").click()
    expect(here.page.get_by_text("Published update-reservation-flights 0.1.0.")).to_be_visible()
    expect(here.page.get_by_text("Nothing waits for you")).to_be_visible()
    assert Skill.objects.get(name=proposal.name).current_revision == proposal
    first = next(iter(found(organization).values()))
    assert (first["name"], first["version"], first["revision_id"]) == (proposal.name, "0.1.0", proposal.pk)
