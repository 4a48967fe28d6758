"""A browser keeps to the policies of `mirix.headers`, and the pages work under them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.factories import make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

SAY = "document.body.insertAdjacentHTML('beforeend', '<img src=/static/none onerror=\"window.got = 1\">')"
OUTSIDE = "fetch('https://elsewhere.example/').then(() => 'sent', () => 'refused')"


def test_the_page_of_the_routes_lists_them_and_asks_the_api(screen):
    docs = screen().open("/docs")
    health = docs.page.locator("#operations-operations-health")
    expect(health).to_be_visible()
    health.locator(".opblock-summary-control").click()
    health.get_by_role("button", name="Try it out").click()
    health.get_by_role("button", name="Execute").click()
    expect(health.locator(".live-responses-table .response-col_status").last).to_have_text("200")


def test_a_page_of_the_admin_runs_no_script_that_came_with_a_text(browser, live_server):
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(f"{live_server.url}/admin/login/")
    page.evaluate(SAY)
    page.wait_for_function("document.images[document.images.length - 1].complete")
    assert page.evaluate(OUTSIDE) == "refused"
    assert page.evaluate("window.got") is None
    assert any("Content Security Policy" in text and "inline" in text for text in refused)
    page.close()


def test_the_menu_of_the_admin_works_by_its_expressions_and_keys_may_pass_it(screen):
    home = screen(make_superuser(), width=390).open("/admin/")
    assert home.page.evaluate("typeof Alpine") == "object"
    assert home.page.evaluate("document.body._x_dataStack !== undefined")
    home.page.keyboard.press("Tab")
    home.page.keyboard.press("Enter")
    home.page.keyboard.press("Tab")
    assert home.page.evaluate("document.activeElement.closest('#content') !== null")
