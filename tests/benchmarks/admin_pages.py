"""The addresses at which `./run bench admin` looks: every page that answers to GET, every list in every way.

Pages come from the table of who may do what (`tests/access/admin_table.py`), which has to name each; lists,
their filters and their columns from the registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory
from django.urls import reverse

from tests.access.admin_pages import PAGES
from tests.access.admin_table import COLUMNS, MODELS, SITE
from tests.access.routes import read_table

NOT_MEASURED = {"login", "logout", "jsi18n"}
SEARCHES = ("order", "update-order-77", "no-such-thing")
"""What many rows have, what few have, and what none has."""
BULK = 200

ROWS = {
    "auth.user": "1000000",
    "conversations.intakerecord": "intake-0",
    "conversations.session": "session-0",
    "procrastinate.procrastinatejob": "1",
    "skills.autodreamrun": "run-0",
    "skills.distillationattempt": "attempt-0",
    "skills.proposercall": "call-0",
    "skills.searchevent": "search-0",
    "skills.skill": "proc-0",
    "skills.skillexperience": "sexp-0",
    "skills.skillrevision": "prop-0",
    "tenants.apikey": "key-0",
    "tenants.auditevent": "audit-0",
    "tenants.client": "client-0",
    "tenants.enduser": "enduser-0",
    "tenants.erasurereceipt": "erasure-0",
    "tenants.membership": "member-0",
    "tenants.notification": "notice-0",
    "tenants.organization": "org-0",
}
"""The row of each kind that is opened, of the first organization."""
QUERIES = {
    "skills.searchevent try": [
        "?organization=org-0",
        "?organization=org-0&query=refund",
        "?organization=org-0&query=refund&user_id=user-0",
    ],
    "skills.skill rollback": ["?to=0.1.0"],
    "conversations.session change": ["", "?page=150", "?q=refund"],
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """An address, by what page it is of and in which way."""

    name: str
    way: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Ways:
    """In how many ways a visitor looks at each list, and whether at everything else too."""

    choices: int = 0
    """So many choices of each filter."""
    searches: int = 0
    """So many of `SEARCHES`."""
    sorts: bool = False
    """By each column that it can be sorted by."""
    pages: bool = False


def pages_for(user: User, ways: Ways) -> list[Page]:
    """Return the pages that a superuser is shown, of lists what this user's filters offer."""
    lists = [page for found in admin.site._registry.items() for page in _list(user, ways, *found)]
    return [*(_pages() if ways.pages else ()), *lists]


def _pages() -> Iterator[Page]:
    for label, table in [("", SITE), *MODELS.items()]:
        for row in read_table(COLUMNS + table):
            name = f"{label} {row.route}".strip()
            if "GET" not in row.methods or row.route == "changelist" or name in NOT_MEASURED:
                continue
            if row.statuses["superuser"] == 200 or name in QUERIES:
                yield from _page(label, name)


def _page(label: str, name: str) -> Iterator[Page]:
    path = "/" + re.sub(r"<[a-z:_]+>", ROWS.get(label, ""), PAGES[name])
    path = re.sub(r"\^\(.*\)/\$", "skills/", path)
    queries = QUERIES.get(name, [""])
    if name.endswith("_many"):
        prefix, _, _ = ROWS[label].rpartition("-")
        queries = [f"?ids={','.join(f'{prefix}-{number * 2}' for number in range(BULK))}"]
    for query in queries:
        yield Page(name=name, way="page", url=path + query)


def _list(user: User, ways: Ways, model: Any, model_admin: Any) -> Iterator[Page]:
    label = model._meta.label_lower
    name, path = f"{label} changelist", reverse("admin:{}_{}_changelist".format(*label.split(".")))
    request = RequestFactory().get(path)
    request.user = user
    if not model_admin.has_view_permission(request):
        return
    shown = model_admin.get_changelist_instance(request)
    queries = [("first", "")]
    if shown.paginator.num_pages > 1:
        queries.append(("far", f"?p={shown.paginator.num_pages}"))
    for spec in shown.filter_specs:
        choices = [choice for choice in spec.choices(shown) if not choice["selected"]]
        queries += [("filtered", choice["query_string"]) for choice in choices[: ways.choices]]
    if model_admin.get_search_fields(request):
        queries += [("searched", f"?q={word}") for word in SEARCHES[: ways.searches]]
    sortable = model_admin.get_sortable_by(request) if ways.sorts else ()
    for number, column in enumerate(shown.list_display):
        if column in sortable and shown.get_ordering_field(column):
            queries.append(("sorted", f"?o={number}"))
    for way, query in queries:
        yield Page(name=name, way=way, url=path + query)
