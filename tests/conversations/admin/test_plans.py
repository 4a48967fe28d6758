"""Lists, searches and transcripts go by indexes that give the order too: a million rows cost what fifty do.

What matters is the plan's shape, so each statement of a page is explained with the ways that read whole
tables switched off: where there is no index to go by, the plan still has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.models import ConversationMessage, IntakeRecord, Session
from mirix.tenants.models import Membership
from tests.factories import make_client, make_member, make_owner, make_session, make_superuser

pytestmark = pytest.mark.django_db

TABLES = {model._meta.db_table for model in (ConversationMessage, IntakeRecord, Session)}
SESSIONS = "/admin/conversations/session/"
INTAKE = "/admin/conversations/intakerecord/"
ROWS = 3_000

FILL_SESSIONS = """
INSERT INTO conversations_session (id, organization_id, end_user_id, created_at, session_id, tag, filter_tags,
    state, turn_count, last_seq, history_hash, distilled_through, attempts, last_error, pruned_through)
SELECT 'session-' || n, %s, %s, now() - n * interval '1 second', 'task-' || n, 'task', '{}',
    CASE WHEN n %% 100 = 0 THEN 'dead' ELSE 'distilled' END, 0, 0, '', 0, 0, '', 0
FROM generate_series(1, %s) n"""
FILL_INTAKE = """
INSERT INTO conversations_intakerecord (id, organization_id, end_user_id, client_id, created_at, session_id,
    session_tag, filter_tags, history, body, body_hash, message_count, idempotency_key, state, error)
SELECT 'intake-' || n, %s, %s, %s, now() - n * interval '1 second', 'task-' || n, '', '{}', '',
    CASE WHEN n %% 100 = 0 THEN '{"messages": []}'::json END, repeat('0', 64), 1, '',
    CASE WHEN n %% 100 = 0 THEN 'failed' ELSE 'stored' END, ''
FROM generate_series(1, %s) n"""
FILL_TURNS = """
INSERT INTO conversations_conversationmessage (organization_id, end_user_id, created_at, client_id,
    session_id, seq, role, content, content_hash, tool_calls, tool_name, tool_call_id, is_error, truncated,
    message_id, part)
SELECT %s, %s, now(), %s, %s, n, 'user', 'say ' || n, repeat('0', 64), '[]', '', '', n %% 500 = 0, false,
    '', 0
FROM generate_series(1, %s) n"""


@pytest.fixture
def long_session(owner) -> Session:
    """A long session among many, with many requests."""
    client = make_client(owner.organization)
    session = make_session(owner, session_id="long")
    Session.objects.filter(pk=session.pk).update(last_seq=ROWS, turn_count=ROWS)
    other = make_owner(owner.organization, "u1").end_user.pk
    organization = owner.organization.pk
    with connection.cursor() as cursor:
        cursor.execute(FILL_SESSIONS, [organization, other, ROWS])
        cursor.execute(FILL_INTAKE, [organization, other, client.pk, ROWS])
        cursor.execute(FILL_TURNS, [organization, owner.end_user.pk, client.pk, session.pk, ROWS])
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in TABLES:
            cursor.execute(f"ANALYZE {table}")
    return session


@pytest.fixture(params=["a member", "a member of two", "a superuser"])
def who(request) -> str:
    return request.param


@pytest.fixture
def browser(who, owner) -> Browser:
    browser = Browser()
    browser.force_login(_user(who, owner))
    return browser


def _user(who: str, owner: Any) -> User:
    if who == "a superuser":
        return make_superuser()
    member = make_member(owner.organization, "operator")
    if who == "a member of two":
        second = make_owner().organization
        Membership.objects.create(user=member, organization=second, role="operator")
    return member


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def scans(browser: Browser, path: str) -> tuple[set[str], set[str]]:
    """Open a page; return the indexes by which it reads the large tables, and how else it reads them."""
    with CaptureQueriesContext(connection) as queries:
        assert browser.get(path).status_code == 200
    indexes: set[str] = set()
    others: set[str] = set()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        for query in queries.captured_queries:
            sql = query["sql"]
            if not sql.startswith("SELECT") or not any(f'FROM "{table}"' in sql for table in TABLES):
                continue
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
            raw = cursor.fetchone()[0]
            for node in nodes((json.loads(raw) if isinstance(raw, str) else raw)[0]["Plan"]):
                if name := node.get("Index Name"):
                    indexes.add(name)
                elif node["Node Type"] == "Sort":
                    others.add("Sort")
                elif node.get("Relation Name") in TABLES and "Bitmap" not in node["Node Type"]:
                    others.add(f"{node['Node Type']} of {node['Relation Name']}")
        cursor.execute("RESET enable_seqscan; RESET enable_sort")
    return indexes, others


LISTS = (
    SESSIONS,
    f"{SESSIONS}?p=2",
    f"{SESSIONS}?o=8",
    f"{SESSIONS}?state__exact=dead",
    f"{SESSIONS}?tag__exact=conversation",
    INTAKE,
    f"{INTAKE}?p=2",
    f"{INTAKE}?state__exact=failed",
    f"{INTAKE}?state__exact=stored",
    f"{INTAKE}replay/?state__exact=failed",
)
COUNTED_TO_THE_CAP = {
    ("a superuser", f"{SESSIONS}?tag__exact=conversation"): {"Seq Scan of conversations_session"},
    ("a superuser", f"{INTAKE}?state__exact=stored"): {"Seq Scan of conversations_intakerecord"},
}
"""Counts over all organizations of what has no index of its own; they stop at the paginator's cap."""
SEARCHES = {
    f"{SESSIONS}?q=task-77": "session_session_id_prefix",
    f"{INTAKE}?q=task-77": "intake_session_id_prefix",
}


def test_lists_and_searches_and_transcripts_read_no_table_whole(who, browser, long_session):
    others = {path: scans(browser, path)[1] for path in LISTS}
    assert others == {path: COUNTED_TO_THE_CAP.get((who, path), set()) for path in LISTS}
    for path, index in SEARCHES.items():
        used, ways = scans(browser, path)
        assert index in used
        assert ways <= {"Sort"}  # of what was found
    transcript = reverse("admin:conversations_session_change", args=[long_session.pk])
    for query in ("", "?page=30", "?q=say+77"):
        used, ways = scans(browser, transcript + query)
        assert used >= {"turn_session_seq_uniq", "turn_session_errors"}, query
        assert ways == set(), query
