"""Where administrators alone decide: the tables hold, but that a reviewer decides about nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from mirix.tenants.models import OrganizationSettings
from tests.access import test_admin, test_api
from tests.access.admin_table import COLUMNS, DECISIONS, HISTORY
from tests.access.conftest import undone
from tests.access.routes import Row, read_table
from tests.access.world import Stored, World, everything

pytestmark = pytest.mark.django_db

API_DECISIONS = [row for row in test_api.ROWS if row.route.endswith(("/approve", "/reject"))]
ADMIN_DECISIONS = [
    Row(f"{label} {row.route}", row.methods, row.statuses)
    for label, table in (("skills.skillrevision", DECISIONS), ("skills.skill", HISTORY))
    for row in read_table(COLUMNS + table)
]


def of_administrators(row: Row) -> Row:
    """Return the row as it is then: a reviewer may do what an operator may."""
    return replace(row, statuses=row.statuses | {"reviewer": row.statuses["operator"]})


@pytest.fixture(params=["chosen", "inherited"])
def strict(request, world: World, settings) -> World:
    """Administrators alone decide at home, by the organization's choice or the installation's."""
    rows = OrganizationSettings.objects.filter(organization=world.home.organization)
    if request.param == "chosen":
        assert rows.update(deciding_role="administrator") == 1
    else:
        settings.MIRIX_DECIDING_ROLE = "administrator"
    return world


@pytest.mark.parametrize("row", [*map(of_administrators, API_DECISIONS)], ids=str)
def test_the_api(strict: World, row: Row):
    assert_statuses(strict, row, test_api.CALLERS, test_api.writing, test_api.reading)


@pytest.mark.parametrize("row", [*map(of_administrators, ADMIN_DECISIONS)], ids=str)
def test_the_admin(strict: World, row: Row):
    def writing(world: World, route: str, method: str, name: str, expected: int, stored: Stored) -> Any:
        return test_admin.writing(world, route, name, expected, stored)

    def reading(world: World, route: str, method: str, name: str, expected: int) -> Any:
        return test_admin.reading(world, route, name, method, expected)

    assert_statuses(strict, row, test_admin.VISITORS, writing, reading)


def assert_statuses(
    world: World,
    row: Row,
    callers: dict[str, tuple[str, ...]],
    writing: Callable[..., list[str]],
    reading: Callable[..., list[str]],
) -> None:
    stored = Stored.now(world)
    problems: list[str] = []
    with undone():
        for column, expected in row.statuses.items():
            for name, method in product(callers[column], row.methods):
                if method == "POST" and expected in (200, 302) and column != "nobody":
                    problems += writing(world, row.route, method, name, expected, stored)
                else:
                    problems += reading(world, row.route, method, name, expected)
        if everything() != stored.all:
            problems.append("one of those that may not write has changed something")
    assert not problems, "\n".join([row.route, *problems])


def test_what_a_reviewer_is_told(strict: World):
    answer = test_api.send(strict, "reviewer", "POST", "v1/proposals/<id:pk>/approve")

    assert answer.json() == {"detail": "This needs the role administrator; yours is reviewer."}


def test_a_reviewer_is_offered_no_decision(strict: World):
    """And may still write a text that somebody else decides about."""
    proposal = strict.home.rows["skills.skillrevision"].pk
    page = test_admin.visit(strict, "reviewer", "GET", "skills.skillrevision change").content.decode()
    listed = test_admin.visit(strict, "reviewer", "GET", "skills.skillrevision changelist").content.decode()

    assert f"/{proposal}/approve/" not in page
    assert f"/{proposal}/edit/" in page
    assert "approve_selected" not in listed
    edited = test_admin.visit(strict, "reviewer", "POST", "skills.skillrevision edit")
    assert edited.status_code == 302
    assert "skillrevision" in edited["Location"]
