"""No page of the admin leads anybody to a page that is not for them, or that is not there."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.urls import reverse

from tests.access.admin_pages import PAGES
from tests.access.test_admin import CLIENT, path_of
from tests.access.world import World

pytestmark = pytest.mark.django_db

LINK = re.compile(r'href="([^"]*)"')
NO_START = {"logout", "login"}


@pytest.mark.parametrize("visitor", ["reviewer", "operator", "administrator", "superuser", "stranger"])
def test_every_link_that_is_shown_opens(world: World, visitor: str):
    CLIENT.cookies.clear()
    CLIENT.cookies["sessionid"] = world.cookies[visitor]
    known: dict[str, int] = {}
    shown: dict[str, str] = {}
    for page in PAGES:
        path = path_of(world, page)
        if page in NO_START:
            continue
        answer = CLIENT.get(path)
        known[path] = answer.status_code
        if answer.status_code == 200 and answer["Content-Type"].startswith("text/html"):
            for link in links_of(answer.content.decode(), path):
                shown.setdefault(link, path)
    dead = []
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for link, source in shown.items():
        # Of addresses that differ in what they ask a list for, one speaks for all.
        parts = urlsplit(link)
        kind = parts.path, tuple(sorted(name for name, _ in parse_qsl(parts.query)))
        if kind in seen:
            continue
        seen.add(kind)
        status = known[link] if link in known else CLIENT.get(link, follow=True).status_code
        if status not in (200, 302):
            dead.append(f"{source} leads to {link}: {status}")
    assert not dead, "\n".join(dead)
    assert len(seen) > 30


def links_of(text: str, path: str) -> list[str]:
    """Return the addresses within the admin that a page leads to, but that of the logout."""
    found = (urljoin(path, html.unescape(link)).partition("#")[0] for link in LINK.findall(text) if link)
    inside = reverse("admin:index")
    return [link for link in found if link.startswith(inside) and link != reverse("admin:logout")]
