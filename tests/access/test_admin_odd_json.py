"""JSON of a shape that nobody expects: pages and the API show what they can, and never fail."""

from __future__ import annotations

import json
from itertools import product

import pytest
from django.db import IntegrityError, connection, models, transaction

from skills.answers import dream_answer
from skills.models import AutoDreamRun
from tests.access.admin_pages import PAGES
from tests.access.conftest import undone
from tests.access.test_admin import CLIENT, path_of
from tests.access.test_api import ROWS, send
from tests.access.world import World, tenant_models
from tests.filling import unchecked

pytestmark = pytest.mark.django_db

SHAPES = [
    None,
    {},
    [],
    "x",
    1,
    [1, None, "x", [], {"name": 1}],
    {"name": {"a": [None]}, "counts": "x", "messages": {"x": 1}, "skipped": 1, "turns": [[]]},
    {"items": 1, "keys": [], "name": None, "sessions": {"distilled": "x"}, "created": 1, "index": {}},
]
READS_NONE = {
    "add", "anything else", "app_list", "autocomplete", "delete", "jsi18n", "login", "logout", "old address",
    "password_change", "password_change_done", "search", "view_on_site", "webhook_secret",
}  # fmt: skip
"""Pages that show no row of ours."""


@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
def test_every_page_bears_any_json(world: World, shape: object):
    written = write_everywhere(shape)
    assert written > 12
    CLIENT.cookies.clear()
    CLIENT.cookies["sessionid"] = world.cookies["superuser"]
    failed = []
    for page in PAGES:
        if page.rpartition(" ")[2] in READS_NONE or page in READS_NONE:
            continue
        with undone():
            status = CLIENT.get(path_of(world, page) + chosen(world, page)).status_code
        if status >= 500:
            failed.append(f"{page}: {status}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("state", ["queued", "running", "failed"])
def test_so_do_those_of_a_run_in_any_state(world: World, state: str):
    CLIENT.cookies["sessionid"] = world.cookies["superuser"]
    run = world.home.rows["skills.autodreamrun"]
    for shape in SHAPES:
        with undone():
            write_everywhere(shape)
            AutoDreamRun.objects.filter(pk=run.pk).update(state=state, finished_at=None)
            for page in ("skills.autodreamrun change", "skills.autodreamrun live"):
                assert CLIENT.get(path_of(world, page)).status_code == 200, shape
            assert send(world, "admin key", "GET", "v1/runs/<id:pk>").status_code == 200, shape
            dream_answer(AutoDreamRun.objects.get(pk=run.pk))


@pytest.mark.parametrize("shape", SHAPES, ids=json.dumps)
def test_the_api_bears_any_json(world: World, shape: object):
    write_everywhere(shape)
    routes = {row.route for row in ROWS if "GET" in row.methods}
    assert {"v1/runs/<id:pk>", "v1/proposals/<id:pk>", "memory/search"} <= routes
    failed = []
    for route, name in product(sorted(routes), ("admin key", "superuser")):
        with undone():
            status = send(world, name, "GET", route).status_code
        if status >= 500:
            failed.append(f"{name}, {route}: {status}")
    assert not failed, "\n".join(failed)


def chosen(world: World, page: str) -> str:
    """Return the end of the address of a page that asks about many rows: one at home."""
    row = world.home.rows.get(page.partition(" ")[0])
    return f"?ids={row.pk}" if row is not None and page.endswith("_many") else ""


def write_everywhere(shape: object) -> int:
    """Give every JSON column of every row that shape, as far as the database holds it; return how many."""
    written = 0
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, models.JSONField):
                statement = f'UPDATE {model._meta.db_table} SET "{field.column}" = %s'
                try:
                    with transaction.atomic(), unchecked(), connection.cursor() as cursor:
                        cursor.execute(f"{statement}::{field.db_type(connection)}", [json.dumps(shape)])
                except IntegrityError:
                    continue  # a constraint refuses it
                written += 1
    return written
