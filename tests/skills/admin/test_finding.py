"""Searching the lists of what was learned: by words, by ids as a whole, and by indexes alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from skills.models import SkillExperience
from tests.factories import (
    make_attempt,
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_proposer_call,
    make_run,
    make_session,
    make_skill,
    make_superuser,
)
from tests.mirix.admin.test_pages import as_user, changelist

pytestmark = pytest.mark.django_db

EXPERIENCES = "skills.skillexperience"
REVISIONS = "skills.skillrevision"


def found(user: User | Browser, label: str, query: str, **filters: str) -> set[str]:
    """Search a list; return the keys of what it shows."""
    browser = as_user(user) if isinstance(user, User) else user
    answer = browser.get(changelist(label), {"q": query} | filters)
    assert answer.status_code == 200
    return {row.pk for row in answer.context["cl"].result_list}


FINDS = [
    ("Ask for the card", "card ask"),
    ("Ask for the card", "ASK the CA"),
    ("update-order-77", "order"),
    ("update_order of /v1/orders.json", "v1 update json"),
    ("Pin 1.2.3, not 1.3", "2.3"),
    ("Say “refunded” — and wait", "refunded wait"),
    ("It's 50% off; that's all", "50 all"),
    ("Write to a.b@example.org", "example org"),
    ("Öffne das Ärgernis", "ärger öff"),
    ("退款政策 of the shop", "款政"),
    ("iPhone退款政策", "iphone 退"),
]
PASSES_OVER = [
    ("Refund it", "fund"),
    ("Refund it", "refund order"),
    ("退款政策", "政款"),
    ("Refund it", "—"),
    ("Refund it", "!"),
]
HOSTILE = (
    "' | !:*",
    "\\",
    "(((",
    "refund:*&",
    "<->",
    "re'fund\\",
    "%",
    "a" * 5_000,
    "x " * 500,
    "\x00",
    "款" * 500,
)


@pytest.mark.parametrize(("title", "query"), FINDS)
def test_finds_what_has_words_that_begin_so(title, query, owner):
    experience = make_experience(owner, title=title, topic="")
    make_experience(owner, title="Something else", topic="")
    assert found(make_superuser(), EXPERIENCES, query) == {experience.pk}


@pytest.mark.parametrize(("title", "query"), PASSES_OVER)
def test_passes_over_what_lacks_one_of_the_words(title, query, owner):
    make_experience(owner, title=title, topic="")
    assert found(make_superuser(), EXPERIENCES, query) == set()


def test_takes_whatever_is_typed(owner):
    make_experience(owner, title="Refund it")
    browser = as_user(make_superuser())
    for query in HOSTILE:
        assert len(found(browser, EXPERIENCES, query)) <= 1, query


def test_finds_the_words_of_all_columns_together(owner):
    proposal = make_proposal(owner, make_content(name="refund-card", description="Use when a lamp broke."))
    skill = make_skill(owner, make_content(name="refund-cash", description="Use when a lamp broke."))
    browser = as_user(make_superuser())
    assert found(browser, REVISIONS, "lamp refund") == {proposal.pk}
    assert found(browser, "skills.skill", "cash lamp") == {skill.pk}


def test_finds_by_ids_as_a_whole(owner):
    run = make_run(owner)
    proposal = make_proposal(owner, run=run)
    make_proposal(owner, make_content(name="another"))
    call = make_proposer_call(run)
    make_proposer_call(make_run(make_owner(owner.organization, "bob")))
    browser = as_user(make_superuser())
    assert found(browser, REVISIONS, proposal.pk) == {proposal.pk}
    assert found(browser, REVISIONS, run.pk) == {proposal.pk}
    assert found(browser, "skills.proposercall", run.pk) == {call.pk}
    assert found(browser, "skills.proposercall", call.pk[:-1]) == set()


def test_finds_by_the_beginning_of_a_sessions_id_within_ones_organizations(owner):
    stranger = make_owner()
    rows: dict[str, Any] = {}
    for each in (owner, stranger):
        session = make_session(each, session_id="ticket-4711")
        rows[each.organization.pk] = (
            make_experience(each, session, title="Refund it", topic="").pk,
            make_attempt(make_run(each), session).pk,
        )
    member = as_user(make_member(owner.organization, "reviewer"))
    for label, mine in zip(
        (EXPERIENCES, "skills.distillationattempt"), rows[owner.organization.pk], strict=True
    ):
        assert found(member, label, "ticket-47") == {mine}
        assert found(member, label, "icket-47") == set()
        assert len(found(make_superuser(), label, "ticket-47")) == 2


@pytest.mark.parametrize(
    ("label", "index"),
    [
        (EXPERIENCES, "experience_words"),
        (REVISIONS, "revision_words"),
        ("skills.skill", "skill_words"),
        ("skills.proposercall", "proposercall_words"),
    ],
)
def test_searches_go_by_the_index(label, index, owner):
    browser = as_user(make_superuser())
    with CaptureQueriesContext(connection) as queries:
        found(browser, label, "refund", **({"state": "all"} if label == REVISIONS else {}))
    [count] = [query["sql"] for query in queries if "to_tsquery" in query["sql"] and "COUNT" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {count}")
        assert f'"{index}"' in json.dumps(cursor.fetchone()[0])


def test_a_page_further_on_has_its_rows_in_order(owner):
    made = [make_experience(owner, title=f"lesson {number}") for number in range(52)]
    newest_first = [row.pk for row in SkillExperience.objects.order_by("-created_at", "id")]
    assert len(made) == 52
    browser = as_user(make_superuser())
    for query, expected in (({}, newest_first), ({"o": "-8"}, newest_first)):
        pages = [
            browser.get(changelist(EXPERIENCES), query | {"p": p}).context["cl"].result_list for p in (1, 2)
        ]
        assert [row.pk for page in pages for row in page] == expected
