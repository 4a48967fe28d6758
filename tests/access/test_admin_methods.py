"""What changes something in the admin is a POST with the token of its form: over every page there is."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.urls import resolve
from unfold.admin import ModelAdmin

from tests.access.test_admin import CLIENT, PAGES, forms_of, path_of, visit
from tests.access.world import World, everything

pytestmark = pytest.mark.django_db

GET_ACTIONS = {
    name
    for base in ModelAdmin.__mro__
    for name in vars(base)
    if name.startswith("actions_") and isinstance(getattr(base, name), list | tuple)
}
"""What unfold calls by links, or by a button beside a form's own."""


class Forms(HTMLParser):
    """Finds the forms of a page that are sent as POST without a token, and buttons that send elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.method = ""
        self.posts, self.tokens = 0, 0
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.method = given.get("method", "get").casefold()
            self.posts += self.method == "post"
        elif given.get("name") == "csrfmiddlewaretoken":
            self.tokens += self.method == "post"
            if self.method != "post":
                self.wrong.append("a token in the address")
        if given.get("formmethod", "post").casefold() != "post":
            self.wrong.append(f"a button that changes the method: {given}")
        if {"hx-post", "hx-put", "hx-patch", "hx-delete"} & given.keys():
            self.wrong.append(f"a request that no form sends: {given}")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.method = ""


def test_no_model_uses_the_actions_that_unfold_calls_by_get():
    assert {"actions_list", "actions_row", "actions_detail", "actions_submit_line"} == GET_ACTIONS
    used = {
        f"{model._meta.label_lower}.{name}"
        for model, registered in admin.site._registry.items()
        for name in GET_ACTIONS
        if getattr(registered, name)
    }
    assert used == set()


def test_no_page_is_spared_the_check_of_the_token(world: World):
    for page in PAGES:
        view: Any = resolve(path_of(world, page)).func
        while view is not None:
            assert not getattr(view, "csrf_exempt", False), page
            view = getattr(view, "__wrapped__", None)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_form_sends_changes_nothing_by_get(world: World, page: str):
    label = page.partition(" ")[0]
    sent = forms_of(world).get(page, {})
    tries = [sent, sent | {"_method": "POST", "post": "yes"}]
    if page.endswith(" changelist"):
        row = world.home.rows[label]
        model_admin = admin.site._registry[type(row)]
        tries += [
            {"action": name, "_selected_action": row.pk, "select_across": 1, "index": 0, "post": "yes"}
            for name in (getattr(action, "__name__", action) for action in model_admin.actions or ())
        ]
    stored = everything()
    CLIENT.cookies.clear()
    CLIENT.cookies["sessionid"] = world.cookies["superuser"]
    for data in tries:
        CLIENT.get(f"{path_of(world, page)}?{urlencode(data)}")
    assert everything() == stored


@pytest.mark.parametrize("visitor", ["administrator", "superuser"])
def test_every_form_that_is_posted_holds_the_token(world: World, visitor: str):
    posting, problems = set(), []
    for page in PAGES:
        answer = visit(world, visitor, "GET", page)
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        forms = Forms(answer.content.decode())
        problems += [f"{page}: {each}" for each in forms.wrong]
        if forms.posts > 1:  # one logs out
            posting.add(page)
        if forms.posts != forms.tokens:
            problems.append(f"{page}: {forms.posts} forms are posted, with {forms.tokens} tokens")
    assert problems == []
    assert {"skills.skillrevision change", "tenants.client add", "skills.skill archive"} <= posting
