"""The sample sessions: each teaches what it was written to teach, and one teaches nothing."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

import skills.samples
from conversations.extraction import extract
from conversations.models import SESSION_ID_PATTERN
from skills.distillation.offline import OfflineDistiller
from skills.distillation.types import Lesson
from tests.skills.distillation.sessions import turns_of

PATH = Path(skills.samples.__file__).parent / "sessions.jsonl"
SESSIONS = {
    record["session_id"]: record["messages"]
    for record in map(json.loads, PATH.read_text(encoding="utf-8").splitlines())
}
TAUGHT = {
    "support-charged-twice": [
        ("changed_arguments", "find_order"),
        ("changed_arguments", "refund_payment"),
        ("user_confirmation", "refund_payment"),
    ],
    "support-jacket-too-small": [("given_up", "refund_payment"), ("repeated_call", "refund_payment")],
    "freight-pickup-utrecht": [("changed_arguments", "book_pickup"), ("user_confirmation", "book_pickup")],
    "freight-pickup-ghent": [("changed_arguments", "book_pickup")],
    "coding-invoice-tests": [("retried_call", "run_tests"), ("user_confirmation", "run_tests")],
    "coding-client-timeout": [
        ("changed_arguments", "edit_file"),
        ("changed_arguments", "run_tests"),
        ("self_correction", "run_tests"),
    ],
    "coding-note-titles": [
        ("changed_arguments", "edit_file"),
        ("retried_call", "run_tests"),
        ("self_correction", "edit_file"),
        ("user_confirmation", "run_tests"),
        ("user_correction", "edit_file"),
    ],
    "ops-checkout-to-staging": [
        ("changed_arguments", "deploy_service"),
        ("user_confirmation", "deploy_service"),
    ],
    "ops-search-to-production": [
        ("changed_arguments", "deploy_service"),
        ("user_correction", "deploy_service"),
    ],
    "ops-gateway-errors": [("changed_arguments", "query_logs"), ("user_confirmation", "query_logs")],
    "ops-slow-payments": [("changed_arguments", "query_logs")],
    "billing-february-invoice": [("changed_arguments", "send_email"), ("user_correction", "send_email")],
    "billing-opening-hours": [],
}


def lessons_of(name: str) -> list[Lesson]:
    return OfflineDistiller().distil(turns_of(SESSIONS[name]), first_seq=1).lessons


@pytest.mark.parametrize("name", SESSIONS)
def test_a_sample_teaches_what_it_was_written_to_teach(name):
    found = {(lesson.details["pattern"], lesson.details["tool"]) for lesson in lessons_of(name)}
    assert sorted(found) == TAUGHT[name]


@pytest.mark.parametrize("name", SESSIONS)
def test_every_message_of_a_sample_is_understood(name):
    assert re.fullmatch(SESSION_ID_PATTERN, name)
    skipped = extract(SESSIONS[name]).skipped
    assert all(SESSIONS[name][one.index]["role"] == "system" for one in skipped)


def test_several_sessions_support_one_skill():
    support = defaultdict(set)
    for name in SESSIONS:
        for lesson in lessons_of(name):
            support[lesson.topic].add(name)
    assert {topic: len(names) for topic, names in support.items()} == {
        "tool:find_order": 1,
        "tool:refund_payment": 2,
        "tool:book_pickup": 2,
        "tool:run_tests": 3,
        "tool:edit_file": 2,
        "tool:deploy_service": 2,
        "tool:query_logs": 2,
        "tool:send_email": 1,
    }


def test_only_reserved_domains_appear():
    addresses = re.findall(r"@([\w.-]+\w)|https?://([\w.-]+\w)", PATH.read_text(encoding="utf-8"))
    assert {host for pair in addresses for host in pair if host} == {"aldersgate.example"}
