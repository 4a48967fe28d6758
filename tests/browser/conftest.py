"""A real browser against a live server. This directory runs as a pytest process of its own.

Every page that a test opens is watched: a script error, a console error, a failed request, a request to
another host or an answer of 400 and above fails the test that caused it.
"""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # playwright keeps an event loop in this thread

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "var" / "test-results" / "browser"
LOOKS = (("dark", True, None), ("light", False, None), ("390", False, 390))
"""By the name of a picture: whether it is dark, and the width where it is not the page's own."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.path()
    if path is None:
        message = "no Chromium was found; install it, or name it in the variable CHROMIUM"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.ARGUMENTS))
        yield browser
        browser.close()


class Screen:
    """A page at the live server, with everything that went wrong on it."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.faults.append(f"request to another host: {request.url}")

    def _failed(self, request: Any) -> None:
        # A page that is left gives up what it still loads or asks for; that is no fault of either.
        is_given_up = request.failure == "net::ERR_ABORTED" and request.method == "GET"
        if not (is_given_up and request.resource_type != "document"):
            self.faults.append(f"request failed: {request.url} ({request.failure})")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status} {response.request.method} {response.url}")

    def open(self, path: str) -> Screen:
        self.page.goto(self.base + path)
        return self

    def text(self) -> str:
        return self.page.locator("body").inner_text()

    def keep(self, name: str) -> None:
        """Keep a picture of the page for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.evaluate("document.fonts.ready.then(() => true)")
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def keep_in_every_look(self, name: str) -> None:
        """Keep pictures of the page in light, in dark and narrow; in each it has to fit and to bar nobody."""
        size = self.page.viewport_size
        assert size is not None
        for look, is_dark, width in LOOKS:
            # The theme asks the browser for its scheme once, when a page begins.
            self.page.evaluate("dark => document.documentElement.classList.toggle('dark', dark)", is_dark)
            self.page.set_viewport_size(size | {"width": width or size["width"]})
            assert self.overflow() <= 0, f"{name}, {look}"
            assert self.barriers() == [], f"{name}, {look}"
            self.keep(f"{name}-{look}")
        self.page.set_viewport_size(size)

    def forgive(self, status: int, path: str) -> None:
        """Take an answer that was meant for none of the page's faults; there has to be this one alone."""
        told = [fault for fault in self.faults if not fault.startswith("console: Failed to load resource")]
        assert [(fault[:3], path_of(fault)) for fault in told] == [(str(status), path)], self.faults
        self.faults.clear()

    def barriers(self) -> list[str]:
        """What axe finds that keeps somebody from using the page: its serious and critical findings."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {', '.join(node['target'][0] for node in one['nodes'])}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def overflow(self) -> int:
        """How many pixels the page is wider than its window, once it is loaded."""
        self.page.wait_for_load_state()
        return self.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")


OpenScreen = Callable[..., Screen]


def path_of(url: str) -> str:
    """The path of an address, without host and query."""
    return re.sub(r"^.*?https?://[^/]+", "", url).split("?")[0]


@pytest.fixture
def screen(browser: Browser, live_server: Any) -> Iterator[OpenScreen]:
    """Open a new page, as a user where one is given; at the end nothing may have gone wrong on any."""
    opened: list[Screen] = []

    def open_screen(user: User | None = None, *, width: int = 1440, **options: Any) -> Screen:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        if user is not None:
            client = Client()
            client.force_login(user)
            session = client.cookies["sessionid"].value
            context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        opened.append(Screen(context.new_page(), live_server.url))
        return opened[-1]

    yield open_screen
    faults = [fault for each in opened for fault in each.faults]
    for each in opened:
        each.page.context.close()
    assert faults == []
