"""What every list of the product costs in queries: the same with 1 row and with 20, and exactly so many.
Of the admin with 20,000 as well.

The lists are found in the registry of the admin and in the routes of the API; one without a line fails here.
A number that changes is changed here on purpose, or it is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from procrastinate.contrib.django.models import ProcrastinateJob
from rest_framework.generics import GenericAPIView
from rest_framework.test import APIClient

from conversations.models import ConversationMessage
from mirix.queue import defer
from mirix.tenants.owners import Owner
from skills.models import SkillRevision
from skills.search.index import index_skill
from tests.access.routes import registered
from tests.factories import (
    make_content,
    make_experience,
    make_intake,
    make_organization,
    make_owner,
    make_proposal,
    make_run,
    make_search,
    make_session,
    make_skill,
    make_superuser,
)
from tests.filling import multiply
from tests.mirix.admin.test_pages import ROWS, WITHOUT_OWNER, as_user, changelist
from tests.skills.admin.test_home import populate

pytestmark = pytest.mark.django_db

ADMIN = {
    "auth.user": 7,
    "conversations.intakerecord": 9,
    "conversations.session": 8,
    "procrastinate.procrastinatejob": 9,
    "skills.autodreamrun": 8,
    "skills.distillationattempt": 8,
    "skills.proposercall": 8,
    "skills.searchevent": 8,
    "skills.skill": 8,
    "skills.skillexperience": 8,
    "skills.skillrevision": 9,  # one of them for the runs to filter by
    "tenants.apikey": 8,
    "tenants.auditevent": 8,
    "tenants.client": 8,
    "tenants.enduser": 8,
    "tenants.erasurereceipt": 8,
    "tenants.membership": 8,
    "tenants.notification": 8,
    "tenants.organization": 7,
}
"""Opened by a superuser who sees several organizations."""

NUMBERED = "row.{0} || '-' || i"
UNIQUE: dict[str, dict[str, str]] = {
    "auth.user": {"username": NUMBERED.format("username")},
    "conversations.session": {"session_id": NUMBERED.format("session_id")},
    "procrastinate.procrastinatejob": {"queueing_lock": "NULL"},
    "skills.skill": {"name": NUMBERED.format("name")},
    "skills.skillrevision": {"name": NUMBERED.format("name"), "skill": "NULL", "base": "NULL"},
    "tenants.apikey": {"secret_hash": "md5(i::text)"},
    "tenants.client": {"name": NUMBERED.format("name")},
    "tenants.enduser": {"user_id": NUMBERED.format("user_id")},
    "tenants.membership": {"user": "row.user_id + i"},
    "tenants.organization": {"name": NUMBERED.format("name")},
}
"""In what copies of a row have to differ, beside their key."""
MANY = 20_000

TRYING = {
    "": 13,
    "?query=refund": 11,
    "?query=refund&user_id=alice": 12,
    "?query=refund&search_method=string_match": 9,
    "?query=refund&limit=1": 11,
}
"""The page on which searches are tried: its use figures, then searches; the last is the line in the log."""

HOME = 23
"""The home page of a superuser who sees several organizations."""

SKILL = 25
"""The page of a skill with its versions, what it was learned from, and the searches that returned it."""

API = {
    "memory/search": 5,
    "memory/search_all_users": 4,
    "v1/experiences": 2,
    "v1/intake": 2,
    "v1/proposals": 3,
    "v1/runs": 2,
    "v1/sessions": 2,
    "v1/sessions/<id:session_id>/turns": 4,
    "v1/skills": 2,
    "v1/skills/<id:pk>/revisions": 4,
}
"""Asked with a key. The last of a search is its line in the log, when the answer is sent already."""

SEARCHES = {"memory/search", "memory/search_all_users"}
"""Lists by what they answer, which their classes do not tell."""


class Parents:
    """The rows that lists within lists belong to."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.session = make_session(owner, session_id="s-1")
        self.first = make_intake(owner)
        self.skill = make_skill(owner)
        SkillRevision.objects.filter(skill=self.skill).update(state="superseded")


def _found_skill(parents: Parents, owner: Owner) -> None:
    index_skill(make_skill(owner, make_content(description="Use when a refund is due.")))


def _turn(parents: Parents, owner: Owner) -> None:
    ConversationMessage.objects.create(
        organization=parents.owner.organization,
        end_user=parents.owner.end_user,
        session=parents.session,
        client=parents.first.client,
        seq=parents.session.turns.count() + 1,
        role="user",
        content="Hello",
        content_hash="0" * 64,
    )


def _revision(parents: Parents, owner: Owner) -> None:
    make_proposal(parents.owner, skill=parents.skill, state="superseded")


MAKE: dict[str, Callable[[Parents, Owner], Any]] = {
    "memory/search": lambda parents, owner: _found_skill(parents, parents.owner),
    "memory/search_all_users": _found_skill,
    "v1/experiences": lambda parents, owner: make_experience(owner),
    "v1/intake": lambda parents, owner: make_intake(owner),
    "v1/proposals": lambda parents, owner: ROWS["skills.skillrevision"](owner),
    "v1/runs": lambda parents, owner: make_run(owner),
    "v1/sessions": lambda parents, owner: make_session(owner),
    "v1/sessions/<id:session_id>/turns": _turn,
    "v1/skills": lambda parents, owner: make_skill(owner),
    "v1/skills/<id:pk>/revisions": _revision,
}


def lists_of_the_api() -> set[str]:
    """Return the routes whose views page through rows."""
    found = set()
    for route in registered():
        if (view := route.view) is None or not issubclass(view.cls, GenericAPIView):
            continue
        actions = getattr(view, "actions", None)
        # The first request adds `head` to the actions, so that they are not compared as a whole.
        if (actions or {}).get("get") == "list" or (actions is None and hasattr(view.cls, "list")):
            found.add(route.path)
    return found


def measured(call: Callable[[], Any]) -> tuple[int, str]:
    """Call a list; return how many queries it ran, and them."""
    call()  # what is kept for later calls is asked for once
    with CaptureQueriesContext(connection) as queries:
        answer = call()
    assert answer.status_code == 200
    return len(queries), "\n".join(query["sql"] for query in queries.captured_queries)


def test_every_list_has_its_number():
    assert set(ADMIN) == {model._meta.label_lower for model in admin.site._registry}
    assert set(API) == set(MAKE) == lists_of_the_api() | SEARCHES


@pytest.mark.parametrize("label", ADMIN)
def test_a_list_of_the_admin_costs_what_it_should(label, owner):
    make_organization("a second one, so that the filter shows")
    browser: Browser = as_user(make_superuser())

    def make(owner: Owner) -> Any:
        if label == "procrastinate.procrastinatejob":
            defer("skills.run_dream", queue="dreams", run_id="run-1")
            return ProcrastinateJob.objects.latest("pk")
        return WITHOUT_OWNER[label]() if label in WITHOUT_OWNER else ROWS[label](owner)

    call = partial(browser.get, changelist(label))
    make(owner)
    one, _ = measured(call)
    for _ in range(19):
        row = make(make_owner(None if label == "tenants.organization" else owner.organization))
    twenty, queries = measured(call)
    assert (one, twenty) == (ADMIN[label], ADMIN[label]), queries
    if label == "tenants.membership":
        multiply(row.user, MANY, **UNIQUE["auth.user"], id="row.id + i")
    multiply(row, MANY, **UNIQUE.get(label, {}))
    many, queries = measured(call)
    assert many == ADMIN[label], queries
    assert type(row)._base_manager.count() >= MANY


@pytest.mark.parametrize("route", API)
def test_a_list_of_the_api_costs_what_it_should(route, owner, api: APIClient):
    parents = Parents(owner)
    path = "/" + route.replace("<id:session_id>", "s-1").replace("<id:pk>", parents.skill.pk)
    asked = {"query": "refund", "limit": "50"} if route in SEARCHES else {"limit": "50"}
    if route == "memory/search" or route.endswith("/turns"):
        asked["user_id"] = owner.end_user.user_id
    call = partial(api.get, path, asked)
    MAKE[route](parents, owner)
    one, _ = measured(call)
    before = len(call().json()["results"])
    for _ in range(19):
        MAKE[route](parents, make_owner(owner.organization))
    twenty, queries = measured(call)
    assert len(call().json()["results"]) == before + 19
    assert (one, twenty) == (API[route], API[route]), queries


@pytest.mark.parametrize("asked", TRYING)
def test_trying_a_search_costs_what_it_should(asked, owner):
    make_organization("a second one, so that there is a choice")
    browser: Browser = as_user(make_superuser())
    whose = f"{'&' if asked else '?'}organization={owner.organization.pk}"
    call = partial(browser.get, reverse("admin:skills_searchevent_try") + asked + whose)
    found = []
    for rows in (1, 19):
        for _ in range(rows):
            skill = make_skill(owner, make_content(description="Use when a refund is due."))
            index_skill(skill)
            make_search(owner, [skill], degraded="no endpoint")
        count, queries = measured(call)
        found.append(count)
    assert found == [TRYING[asked]] * 2, queries


def test_the_home_page_costs_what_it_should(owner):
    make_organization("a second one, so that there is a choice")
    call = partial(as_user(make_superuser()).get, reverse("admin:index"))
    found = []
    for owners in (1, 19):
        for _ in range(owners):
            populate(make_owner(owner.organization))
        count, queries = measured(call)
        found.append(count)
    assert found == [HOME, HOME], queries


def test_the_page_of_a_skill_costs_what_it_should(owner):
    skill = make_skill(owner)
    call = partial(as_user(make_superuser()).get, reverse("admin:skills_skill_change", args=[skill.pk]))
    session = make_session(owner, [{"role": "user", "content": "No, use the other card."}])
    found = []
    for rows in (1, 19):
        for _ in range(rows):
            make_search(owner, [skill])
            for state, version in (("published", "0.1.1"), ("rejected", ""), ("superseded", "")):
                revision = make_proposal(owner, skill=skill, state=state, version=version)
                revision.experiences.add(make_experience(owner, session))
        count, queries = measured(call)
        found.append(count)
    assert found == [SKILL, SKILL], queries
