"""No page of the admin leads anybody to a page that is not for them, or that is not there."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.urls import resolve, reverse

from tests.access.admin_pages import PAGES
from tests.access.test_admin import CLIENT, ROWS, path_of
from tests.access.test_admin import VISITORS as COLUMNS
from tests.access.world import World

pytestmark = pytest.mark.django_db

LINK = re.compile(r'href="([^"]*)"')
AFTER_LOGGING_IN = {"logout", "login"}
LEAST = {"reviewer": 30, "operator": 30, "administrator": 40, "superuser": 50, "stranger": 30, "outsider": 1}
"""How many different addresses each visitor is shown, at least."""


@pytest.mark.parametrize("visitor", LEAST)
def test_every_link_that_is_shown_opens(world: World, visitor: str):
    CLIENT.cookies.clear()
    CLIENT.cookies["sessionid"] = world.cookies[visitor]
    opened: dict[object, int] = {}
    shown: dict[object, tuple[str, str]] = {}
    for page in pages_for(visitor):
        path = path_of(world, page)
        answer = CLIENT.get(path)
        opened[kind_of(path)] = answer.status_code
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            for link in links_of(answer.content.decode(), path):
                shown.setdefault(kind_of(link), (link, path))
    dead = []
    for kind, (link, source) in shown.items():
        status = opened[kind] if kind in opened else CLIENT.get(link, follow=True).status_code
        if status not in (200, 302):
            dead.append(f"{source} leads to {link}: {status}")
    assert not dead, "\n".join(dead)
    assert len(shown) >= LEAST[visitor]


def pages_for(visitor: str) -> list[str]:
    """Return the pages that a visitor may read; those that refuse them lead nowhere, as the table says."""
    [column] = [column for column, names in COLUMNS.items() if visitor in names]
    open_to = {row.route for row in ROWS if "GET" in row.methods and row.statuses[column] == 200}
    return [page for page in PAGES if page in open_to - AFTER_LOGGING_IN]


def kind_of(link: str) -> object:
    """Return the page and what it is asked for, without rows and values: of such one speaks for all.

    Other rows and filters are what the tests of the lists hold; in what order a list is shown, too.
    """
    parts = urlsplit(link)
    asked = {name for name, _ in parse_qsl(parts.query)} - {"o"}
    return resolve(parts.path).view_name, tuple(sorted(asked))


def links_of(text: str, path: str) -> list[str]:
    """Return the addresses within the admin that a page leads to, but that of the logout."""
    found = (urljoin(path, html.unescape(link)).partition("#")[0] for link in LINK.findall(text) if link)
    inside = reverse("admin:index")
    return [link for link in found if link.startswith(inside) and link != reverse("admin:logout")]
