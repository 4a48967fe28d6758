"""Lists of the admin take what their filters offer; any other query shows the plain list and says so."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from mirix.admin_base import NOT_OFFERED
from tests.factories import make_owner, make_superuser
from tests.mirix.admin.test_pages import ROWS, WITHOUT_OWNER, as_user, changelist

pytestmark = pytest.mark.django_db

MODELS = {model._meta.label_lower: model for model in admin.site._registry}
NOT_OFFERED_ANYWHERE = (
    "nowhere=1",
    "%00=1",
    "pk__in=1",
    "_to_field=nowhere",
    "_changelist_filters=(((",
    "e=1&nowhere=1",
)
HARMLESS = (
    "p=99",  # of a list of one page, whose number nobody asks
    "o=99",
    "o=-99",
    "o=x",
    "o=-.",
    f"o={'9' * 5_000}",
    "p=x",
    f"p={'9' * 5_000}",
    "q=%00",
    "q=%5C",
    "q=" + "9" * 5_000,
    "all=(((",
    "_popup=(((",
    "e=1",
)
VALUES = ("", "(((", "\x00", "9" * 30, "org-00000000-0000-4000-8000-000000000000")


@pytest.fixture(params=sorted(MODELS))
def label(request, owner) -> str:
    """A list with a row, and more than one organization to filter by."""
    make_owner()
    if request.param in ROWS:
        ROWS[request.param](owner)
    else:
        WITHOUT_OWNER[request.param]()
    return request.param


@pytest.fixture
def browser() -> Browser:
    return as_user(make_superuser())


def outcome(browser: Browser, path: str) -> str:
    """Open a list: `shown`, `refused` when it leads to the plain list, which says why, or what is wrong."""
    answer = browser.get(path)
    if (answer.status_code, answer.get("Location")) == (302, path.partition("?")[0]):
        plain = browser.get(answer["Location"])
        return "refused" if plain.status_code == 200 and NOT_OFFERED in plain.content.decode() else "unsaid"
    return "shown" if answer.status_code == 200 else str(answer.status_code)


def test_a_column_that_no_filter_offers_is_not_asked(label, browser):
    path = changelist(label)
    fields = MODELS[label]._meta.get_fields()
    asked = [f"{field.name}__regex=(((" for field in fields]
    asked += [
        f"{field.name}__{far}=x" for field in fields if field.is_relation for far in ("pk", "name__iregex")
    ]
    answers = {query: browser.get(f"{path}?{query}") for query in asked}
    assert {
        query for query, each in answers.items() if (each.status_code, each.get("Location")) != (302, path)
    } == set()


def test_a_query_that_makes_no_sense_shows_the_plain_list_and_says_so(label, browser):
    found = {query: outcome(browser, f"{changelist(label)}?{query}") for query in NOT_OFFERED_ANYWHERE}
    assert found == dict.fromkeys(NOT_OFFERED_ANYWHERE, "refused")


def test_an_order_or_a_search_that_makes_no_sense_is_passed_over(label, browser):
    found = {query: outcome(browser, f"{changelist(label)}?{query}") for query in HARMLESS}
    assert found == dict.fromkeys(HARMLESS, "shown")


@pytest.mark.parametrize("number", ["0", "-1", "3", "9" * 30])
def test_a_page_that_is_not_there_shows_the_first_and_says_so(number, owner, browser, monkeypatch):
    ROWS["skills.skill"](owner), ROWS["skills.skill"](owner)
    monkeypatch.setattr(admin.site.get_model_admin(MODELS["skills.skill"]), "list_per_page", 1)
    assert outcome(browser, f"{changelist('skills.skill')}?p=2") == "shown"
    assert outcome(browser, f"{changelist('skills.skill')}?p={number}") == "refused"


def test_a_filter_takes_what_it_offers_and_survives_the_rest(label, browser):
    path = changelist(label)
    listed = browser.get(path).context["cl"]
    offered = [
        choice["query_string"]
        for spec in listed.filter_specs
        for choice in spec.choices(listed)
        if "query_string" in choice
    ]
    found = {query: outcome(browser, path + query) for query in offered}
    assert found == dict.fromkeys(offered, "shown")
    names = [name for spec in listed.filter_specs for name in spec.expected_parameters()]
    queries = [f"{name}={quote(value)}" for name in names for value in VALUES]
    broken = {query: outcome(browser, f"{path}?{query}") for query in queries}
    assert {query: each for query, each in broken.items() if each not in ("shown", "refused")} == {}


def test_no_list_tells_of_a_column_that_it_does_not_show(owner):
    """A key's hash could be asked for letter by letter."""
    browser = as_user(make_superuser())
    ROWS["tenants.apikey"](owner)
    for query in ("secret_hash__startswith=", "key_hash__gte=0"):
        assert outcome(browser, f"{changelist('tenants.apikey')}?{query}") == "refused"
    assert outcome(browser, f"{changelist('auth.user')}?password__startswith=pbkdf2") == "refused"


def test_no_column_is_called_like_a_relation_by_whose_rows_django_would_sort():
    for model, pages in admin.site._registry.items():
        many = {field.name for field in model._meta.get_fields() if field.one_to_many or field.many_to_many}
        assert not many & set(pages.list_display), model


def test_what_has_no_rows_is_looked_for_once(owner):
    browser = as_user(make_superuser())
    browser.get(changelist("skills.skill"))
    with CaptureQueriesContext(connection) as queries:
        browser.get(changelist("skills.skill"), {"q": "refund"})
    assert len([query for query in queries if 'FROM "skills_skill"' in query["sql"]]) == 1
