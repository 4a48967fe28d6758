"""prune_conversations, as an operator sees it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from conversations.models import ConversationMessage
from mirix.tenants.owners import Owner
from tests.conversations.test_commands import run
from tests.factories import make_owner, make_session

pytestmark = pytest.mark.django_db

KINDS = [
    "distilled_turns",
    "undistilled_turns",
    "request_bodies",
    "requests",
    "sessions",
    "raw_replies",
    "proposer_replies",
    "searches",
]


@pytest.fixture
def owners() -> list[Owner]:
    """Of two organizations, with two and three turns that are due."""
    long_ago = datetime.now(tz=UTC) - timedelta(days=31)
    owners = [make_owner(), make_owner()]
    for count, owner in enumerate(owners, start=2):
        make_session(
            owner,
            [{"role": "user", "content": "hello"}] * count,
            state="distilled",
            distilled_through=count,
            distilled_at=long_ago,
            first_turn_at=long_ago,
        )
    return owners


def counts(turns: int) -> dict[str, int]:
    return dict.fromkeys(KINDS, 0) | {"distilled_turns": turns}


def test_it_prunes_every_organization_and_says_what_went(owners):
    first, second = (owner.organization.name for owner in owners)
    assert run("prune_conversations", "--dry-run") == (
        f"Would go:\n{first}: 2 distilled turns\n{second}: 3 distilled turns\n",
        "",
    )
    assert ConversationMessage.objects.count() == 5
    assert json.loads(run("prune_conversations", "--json")[0]) == {
        "dry_run": False,
        "pruned": counts(5),
        "organizations": [
            {"organization": first, "pruned": counts(2)},
            {"organization": second, "pruned": counts(3)},
        ],
    }
    assert run("prune_conversations") == ("Nothing is due.\n", "")
    assert ConversationMessage.objects.count() == 0


def test_of_one_organization_it_leaves_the_others_alone(owners):
    first, second = owners
    base = ["prune_conversations", "--organization", first.organization.name]
    assert json.loads(run(*base, "--dry-run", "--json")[0]) == {
        "dry_run": True,
        "pruned": counts(2),
        "organizations": [{"organization": first.organization.name, "pruned": counts(2)}],
    }
    assert run(*base)[0] == f"Went:\n{first.organization.name}: 2 distilled turns\n"
    assert ConversationMessage.objects.for_owner(second).count() == ConversationMessage.objects.count() == 3


def test_an_unknown_organization_is_one_line():
    run("prune_conversations", "--organization", "nobody", fails="unknown organization 'nobody'")
