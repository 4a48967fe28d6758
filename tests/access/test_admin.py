"""Every page of the admin × method × visitor: exact statuses, nothing read or changed on a refusal."""

from __future__ import annotations

import re
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.utils import quote
from django.http import HttpResponse
from django.test import Client

from tests.access.admin_pages import PAGES
from tests.access.admin_table import COLUMNS, MODELS, SITE
from tests.access.conftest import undone
from tests.access.routes import METHODS, Row, gaps, read_table
from tests.access.world import Stored, World, everything, everything_of

pytestmark = pytest.mark.django_db

VISITORS = {
    "nobody": ("nobody", "a key", "a token", "not staff", "inactive"),
    "outsider": ("outsider",),
    "reviewer": ("reviewer",),
    "operator": ("operator",),
    "administrator": ("administrator",),
    "superuser": ("superuser",),
    "stranger": ("stranger",),
}
HEADERS = {"a key": "admin key", "a token": "superuser"}
"""Visitors who show what opens the API."""
MEMBERS = ("reviewer", "operator", "administrator")
MISSING = "missing"
EDITED = {"description": "Another.", "instructions": "Another.", "entry_type": "guide"}
NEW_PASSWORD = dict.fromkeys(("password1", "password2"), "Zebra!2993x")
CLIENT = Client(raise_request_exception=False)


def forms_of(world: World) -> dict[str, dict[str, Any]]:
    """Return what is sent to forms at home, by page."""
    organization = world.home.organization.pk
    skill, proposal = world.home.rows["skills.skill"], world.home.rows["skills.skillrevision"]
    return {
        "skills.skill import": {
            "end_user": world.home.rows["tenants.enduser"].pk,
            "text": "---\nname: another\ndescription: Another.\n---\nDo.",
        },
        "conversations.session retry_many": {"ids": world.home.rows["conversations.session"].pk},
        "skills.skillexperience release": {"reason": "So."},
        "skills.skillexperience release_many": {
            "reason": "So.",
            "ids": world.home.rows["skills.skillexperience"].pk,
        },
        "skills.skillrevision reject": {"reason": "No."},
        "skills.skillrevision approve_many": {"ids": proposal.pk},
        "skills.skillrevision reject_many": {"reason": "No.", "ids": proposal.pk},
        "skills.skillrevision edit": EDITED | {"seen": proposal.pk},
        "skills.skill edit": EDITED | {"seen": skill.current_revision_id},
        **{
            f"skills.skill {act}": {"reason": "So.", "seen": skill.current_revision_id}
            for act in ("archive", "quarantine", "restore", "release")
        },
        **{
            f"skills.skill {act}_many": {"reason": "So.", "ids": skill.pk}
            for act in ("archive", "quarantine", "restore", "release")
        },
        "tenants.client add": {"organization": organization, "name": "another"},
        **{
            f"{label} erase": {"typed": world.home.rows[label].pk}
            for label in ("skills.skill", "tenants.client", "tenants.enduser")
        },
        "tenants.client change": {"name": "another"},
        "tenants.enduser add": {"organization": organization, "user_id": "another"},
        "tenants.membership add": {
            "organization": organization,
            "login": "new",
            "username": "another",
            "role": "reviewer",
        },
        "tenants.membership change": {"role": "operator"},
        "tenants.apikey add": {"client": world.home.rows["tenants.client"].pk, "permission": "read"},
        "tenants.apikey rotate": {"overlap_hours": 1},
        "tenants.organization add": {"name": "another"},
        "tenants.organization change": {"name": "another"},
        "auth.user add": {"username": "another", "usable_password": "true", **NEW_PASSWORD},
        "auth.user change": {"username": "another", "is_active": "on", "is_staff": "on"},
        "auth.user password_change": {"usable_password": "true", **NEW_PASSWORD},
    }


ROWS = read_table(COLUMNS + SITE) + [
    Row(f"{label} {row.route}", row.methods, row.statuses)
    for label, table in MODELS.items()
    for row in read_table(COLUMNS + table)
]


def path_of(world: World, page: str, missing: bool = False) -> str:
    """Return the address of a page, of a row at home or of none."""
    label = page.partition(" ")[0]
    row = world.home.rows.get(label)
    assert row or "<" not in PAGES[page] or label not in MODELS, (
        f"make a row of {label} in tests/access/world.py"
    )
    pk = MISSING if missing or row is None else quote(row.pk)
    path = re.sub(r"<[a-z:_]+>", lambda _: str(pk), PAGES[page])
    # The two patterns of the site that are regular expressions.
    return "/" + re.sub(r"\^\(.*\)/\$", "skills/", path).replace("(?P<url>.*)$", "nowhere")


def visit(world: World, visitor: str, method: str, page: str, missing: bool = False) -> HttpResponse:
    """Call a page once, as a browser with that visitor's session would."""
    CLIENT.cookies.clear()
    if visitor in world.cookies:
        CLIENT.cookies["sessionid"] = world.cookies[visitor]
    headers = world.headers[HEADERS[visitor]] if visitor in HEADERS else {}
    data = urlencode(forms_of(world).get(page, {})) if method == "POST" else ""
    kind = "application/x-www-form-urlencoded"
    return CLIENT.generic(method, path_of(world, page, missing), data, kind, headers=headers)


def test_every_page_is_in_the_table():
    problems = gaps(ROWS, PAGES)
    assert not problems, "\n".join(["tests/access/admin_table.py:", *problems])


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_statuses(world: World, row: Row):
    stored = Stored.now(world)
    problems: list[str] = []
    with undone():
        for column, expected in row.statuses.items():
            for visitor, method in product(VISITORS[column], row.methods):
                if writes(visitor, method, expected):
                    problems += writing(world, row.route, visitor, expected, stored)
                else:
                    problems += reading(world, row.route, visitor, method, expected)
        if everything() != stored.all:
            problems.append("one of those that may not write has changed something")
    assert not problems, "\n".join([row.route, *problems])


def writes(visitor: str, method: str, expected: int) -> bool:
    return method == "POST" and expected in (200, 302) and visitor not in VISITORS["nobody"]


def writing(world: World, page: str, visitor: str, expected: int, stored: Stored) -> list[str]:
    """Send a form that is accepted; return what is wrong with the status and with what was changed."""
    with undone():
        answer = visit(world, visitor, "POST", page)
        found = _told(answer, visitor, "POST", expected)
        if expected == 302 and page in forms_of(world) and everything() == stored.all:
            found.append(f"{visitor} is led on, and nothing was changed")
        if visitor == "stranger" and everything_of(world.home) != stored.home:
            found.append(f"{visitor} changes what belongs to the organization")
        if visitor in MEMBERS and everything_of(world.away) != stored.away:
            found.append(f"{visitor} changes what belongs to another organization")
        return found


def reading(world: World, page: str, visitor: str, method: str, expected: int) -> list[str]:
    """Visit a page; return what is wrong with the status and with what was read."""
    answer = visit(world, visitor, method, page)
    found = _told(answer, visitor, method, expected)
    text = answer.content.decode()
    refused = answer.status_code in (401, 403, 404, 405) or visitor in VISITORS["nobody"]
    if (refused or visitor in ("outsider", "stranger")) and world.home.canary in text:
        found.append(f"{visitor} {method} reads what belongs to the organization")
    if (refused or visitor in MEMBERS) and world.away.canary in text:
        found.append(f"{visitor} {method} reads what belongs to another organization")
    return found


def _told(answer: HttpResponse, visitor: str, method: str, expected: int) -> list[str]:
    status = answer.status_code
    return [] if status == expected else [f"{visitor} {method}: {status}, the table says {expected}"]


@pytest.mark.parametrize("row", [row for row in ROWS if "GET" in row.methods], ids=lambda row: row.route)
def test_head_is_as_get_and_other_methods_are_not_there(world: World, row: Row):
    stored = Stored.now(world)
    for visitor in ("nobody", "stranger"):
        answer = visit(world, visitor, "HEAD", row.route)
        # The login redirects those who are logged in on GET alone.
        assert answer.status_code == (200 if row.route == "login" else row.statuses[visitor])
        assert answer.content == b""
    for visitor, method in product(("nobody", "superuser"), set(METHODS) - {"GET", "HEAD", "POST"}):
        assert visit(world, visitor, method, row.route).status_code == 405
    assert everything() == stored.all


@pytest.mark.parametrize("page", [page for page, path in PAGES.items() if "object_id" in path])
def test_what_is_missing_and_what_is_foreign_are_one_answer(world: World, page: str):
    rows = [row for row in ROWS if row.route == page]
    for visitor, row in product(("outsider", "stranger"), rows):
        for method in row.methods:
            with undone():
                foreign = visit(world, visitor, method, page)
                missing = visit(world, visitor, method, page, missing=True)
            assert foreign.status_code == missing.status_code
            if foreign.status_code >= 400:
                assert foreign.content == missing.content


def test_what_the_canaries_prove(world: World):
    """A member at home sees the canary of home: elsewhere its absence means that nothing was read."""
    silent = {
        row.route
        for row in ROWS
        if row.route.split()[0] in MODELS and row.route.endswith((" change", " changelist"))
        if "GET" in row.methods and row.statuses["administrator"] == 200
        if world.home.canary not in visit(world, "administrator", "GET", row.route).content.decode()
    }
    assert silent == {"skills.distillationattempt changelist"}  # ids and numbers alone


def test_a_form_takes_no_row_of_another_organization(world: World):
    home = forms_of(world)
    stored = Stored.now(world)
    for page in (page for page, sent in home.items() if {"organization", "client", "end_user"} & sent.keys()):
        answer = visit(world, "stranger", "POST", page)
        assert answer.status_code == 400, page
    assert everything() == stored.all


@pytest.mark.parametrize("page", [page for page in PAGES if page != "login"])
def test_a_post_from_elsewhere_is_refused(world: World, page: str):
    """Without the token of the form, as a page of another site would send it."""
    strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
    strict.cookies["sessionid"] = world.cookies["superuser"]
    before = everything()
    answer = strict.post(path_of(world, page), forms_of(world).get(page, {}))
    assert answer.status_code in (403, 405)
    assert everything() == before


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/admin/tenants/client/", 200, "text/html"),
        ("/admin/skills/skill/", 200, "text/html"),
        ("/admin/v1/skills", 404, "text/html"),
        ("/v1/skills", 401, "application/json"),
        ("/nowhere", 404, "application/json"),
    ],
)
def test_it_may_be_served_below_a_path(world: World, path: str, status: int, kind: str):
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = world.cookies["administrator"]

    answer = client.get(path, SCRIPT_NAME="/below")

    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (status, kind)
