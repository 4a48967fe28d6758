"""An operator's way: replay what failed, read a long session by errors and words, close it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from conversations.envelope import checked
from conversations.intake import accept
from conversations.models import IntakeRecord, Session
from mirix.tenants.owners import Owner
from tests.browser.conftest import OpenScreen
from tests.factories import make_client, make_intake, make_member, make_owner

pytestmark = pytest.mark.django_db(transaction=True)

INTAKE = "/admin/conversations/intakerecord/"
SESSIONS = "/admin/conversations/session/"
LOOKS = [(1440, "light"), (1440, "dark"), (400, "light"), (400, "dark")]


@pytest.fixture
def owner(transactional_db) -> Owner:
    return make_owner(user_id="alice")


def order(number: int) -> list[dict[str, Any]]:
    """A call that fails, and an answer."""
    call = {"name": "get_order", "arguments": f'{{"order_id": "A-{number}", "with_items": true}}'}
    return [
        {"role": "user", "content": f"Where is my order A-{number}?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"Error: order A-{number} not found"},
        {"role": "assistant", "content": f"I cannot find A-{number}. Do you have another number?"},
    ]


def long_session(owner: Owner) -> Session:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "This is my receipt:"}, picture]},
        *(message for number in range(1, 41) for message in order(number)),
        {"role": "user", "content": "word " * 20_000},
    ]
    client = make_client(owner.organization, "desk")
    envelope = checked(messages=messages, session_id="orders-of-the-day", filter_tags={"project": "returns"})
    accept(client=client, owner=owner, envelope=envelope, wait=True)
    return Session.objects.get()


def failed(owner: Owner, number: int) -> IntakeRecord:
    return make_intake(
        owner,
        state="failed",
        session_id=f"order-{number}",
        message_count=4,
        error="DataError: invalid byte sequence for encoding",
        body={"messages": order(number)},
    )


def partly(owner: Owner) -> IntakeRecord:
    messages = [{"role": "system", "content": "You help."}, *order(7), {"what": "is this"}]
    messages += [{"role": "user", "content": "x" * 70_000}]
    envelope = checked(messages=messages, session_id="order-7")
    return accept(client=make_client(owner.organization), owner=owner, envelope=envelope, wait=True).record


def test_all_that_failed_is_replayed_from_the_list(owner, screen: OpenScreen):
    for number in (1, 2, 3):
        failed(owner, number)
    here = screen(make_member(owner.organization, "operator")).open(INTAKE)
    here.page.get_by_role("link", name="Replay all…").click()
    expect(here.page.get_by_role("heading", name="Replay 3 requests")).to_be_visible()
    here.page.get_by_role("button", name="Replay 3 requests").click()
    expect(here.page.get_by_text("Replayed 3 requests: 3 stored; 12 turns stored.")).to_be_visible()
    expect(here.page.get_by_text("can be replayed")).to_have_count(0)


def test_a_selection_is_replayed_by_an_action_of_the_list(owner, screen: OpenScreen):
    chosen, other = failed(owner, 1), failed(owner, 2)
    here = screen(make_member(owner.organization, "operator")).open(INTAKE)
    here.page.locator(f"input.action-select[value='{chosen.pk}']").check()
    here.page.locator("select[name=action]").select_option("replay_selected")
    here.page.get_by_role("button", name="Run").click()
    here.page.get_by_role("button", name="Replay 1 request").click()
    expect(here.page.get_by_text("Replayed 1 request: 1 stored; 4 turns stored.")).to_be_visible()
    other.refresh_from_db()
    assert other.state == "failed"


def test_a_request_is_replayed_by_a_key(owner, screen: OpenScreen):
    record = failed(owner, 1)
    here = screen(make_member(owner.organization, "operator")).open(f"{INTAKE}{record.pk}/change/")
    expect(here.page.locator(".mx-btn--arming")).to_have_count(0)
    here.page.keyboard.press("r")
    expect(here.page.get_by_text("Replayed 1 request: 1 stored; 4 turns stored.")).to_be_visible()
    here.page.get_by_role("link", name="Read its turns").click()
    expect(here.page.locator("#turn-1")).to_be_in_viewport()


def test_the_key_e_leads_from_error_to_error_over_the_pages(owner, screen: OpenScreen):
    session = long_session(owner)
    here = screen(make_member(owner.organization, "reviewer")).open(f"{SESSIONS}{session.pk}/change/")
    expect(here.page.get_by_role("link", name="Next of 40 errors")).to_be_visible()
    for seq in (4, 8, 12):
        here.page.keyboard.press("e")
        expect(here.page.locator(f"#turn-{seq}:target")).to_be_in_viewport()
    here.open(f"{SESSIONS}{session.pk}/change/#turn-100")
    here.page.keyboard.press("e")
    expect(here.page.locator("#turn-104:target")).to_be_in_viewport()
    assert "page=2" in here.page.url


def test_a_session_is_searched_and_closed(owner, screen: OpenScreen):
    session = long_session(owner)
    here = screen(make_member(owner.organization, "operator")).open(f"{SESSIONS}{session.pk}/change/")
    here.page.get_by_role("searchbox", name="Search in the transcript").fill("a-33")
    here.page.keyboard.press("Enter")
    expect(here.page.get_by_text("4 turns say")).to_be_visible()
    expect(here.page.locator("mark").first).to_have_text("A-33")
    here.page.get_by_role("link", name="Turn 130 in the transcript").click()
    expect(here.page.locator("#turn-130")).to_be_in_viewport()
    here.page.get_by_role("button", name="Close session").click()
    expect(here.page.get_by_text("The session is closed.")).to_be_visible()
    session.refresh_from_db()
    assert session.state == "sealed"


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_no_page_is_wider_than_its_window(width, scheme, owner, screen: OpenScreen):
    session, record = long_session(owner), partly(owner)
    failed(owner, 1)
    here = screen(make_member(owner.organization, "operator"), width=width, color_scheme=scheme)
    for name, path in {
        "sessions": SESSIONS,
        "transcript": f"{SESSIONS}{session.pk}/change/",
        "transcript-end": f"{SESSIONS}{session.pk}/change/?page=2",
        "transcript-search": f"{SESSIONS}{session.pk}/change/?q=a-33",
        "intake": INTAKE,
        "intake-record": f"{INTAKE}{record.pk}/change/",
        "intake-replay": f"{INTAKE}replay/",
    }.items():
        here.open(path)
        assert here.overflow() <= 0, path
        here.keep(f"{name}-{width}-{scheme}")
