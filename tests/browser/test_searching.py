"""Trying a search on the screen: the form, what was found and the lanes; wide and narrow, light and dark."""

from __future__ import annotations

import pytest

from mirix.tenants.owners import Owner
from skills.models import SearchEvent
from tests.browser.conftest import OpenScreen
from tests.factories import make_member, make_owner, make_search
from tests.skills.search.corpora import publish

pytestmark = pytest.mark.django_db(transaction=True)

SKILLS = [
    {
        "name": "refund-a-paid-order",
        "description": "Use when a customer wants the money of a paid order back, by card or by voucher.",
        "instructions": "Look up how the order was paid. Refund it to the card.",
        "triggers": ["refund my order", "money back"],
    },
    {"name": "cancel-an-order", "description": "Stop an order that has not left yet."},
    {"name": "change-the-card-on-file", "description": "Replace the card that pays.", "instructions": "Ask."},
    {"name": "greet", "description": "Say <b>hello</b> & <img src=x onerror=alert(1)>."},
]


@pytest.fixture
def owner(transactional_db) -> Owner:
    owner = make_owner(user_id="desk-7")
    refund, cancel, *_ = publish(owner, SKILLS)
    make_search(owner, [refund, cancel], degraded="no endpoint")
    make_search(owner, [refund])
    return owner


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 400])
def test_a_reviewer_sees_why_a_skill_stands_where_it_does(screen: OpenScreen, owner, width, scheme):
    rita = make_member(owner.organization, "reviewer", "rita")
    mine = screen(rita, width=width, color_scheme=scheme)
    kind = f"{width}-{scheme}"
    mine.open("/admin/skills/searchevent/try/")
    assert "Nothing is searched yet." in mine.text()
    assert "2 times" in mine.text()
    assert mine.overflow() <= 0
    mine.keep(f"search-start-{kind}")

    mine.page.get_by_label("Query").fill("refund an order that was paid by card")
    mine.page.get_by_label("End user").fill("desk-7")
    mine.page.get_by_role("button", name="Search").click()
    assert "query=refund+an+order" in mine.page.url
    assert "3 of 3 in the skills of desk-7" in mine.text()
    assert "This answer is degraded." in mine.text()
    lane = mine.page.get_by_role("region", name="All fields")
    assert lane.get_by_role("link").first.inner_text() == "refund-a-paid-order"
    assert "It could not answer" in mine.page.get_by_role("region", name="Semantic").inner_text()
    assert mine.overflow() <= 0
    mine.keep(f"search-found-{kind}")
    assert SearchEvent.objects.filter(source="admin", user=rita).count() == 1

    mine.page.get_by_label("Query").fill("zebra")
    mine.page.get_by_role("button", name="Search").click()
    assert "No skill was found." in mine.text()
    mine.keep(f"search-nothing-{kind}")

    mine.page.get_by_label("Filter tags").fill("{")
    mine.page.get_by_role("button", name="Search").click()
    assert "This is not valid JSON." in mine.text()
    assert mine.overflow() <= 0
    mine.keep(f"search-wrong-{kind}")
    refused = [fault for fault in mine.faults if "400" in fault]
    mine.faults[:] = [fault for fault in mine.faults if fault not in refused]
    assert refused

    mine.page.get_by_label("Filter tags").fill("")
    mine.page.get_by_label("Query").fill("say hello <script>alert(2)</script>")
    mine.page.get_by_role("button", name="Search").click()
    assert "Say <b>hello</b> & <img src=x onerror=alert(1)>." in mine.text()
    mine.page.get_by_role("link", name="greet").first.click()
    assert "Say <b>hello</b>" in mine.text()
