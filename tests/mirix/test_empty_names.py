"""A variable that a script has left empty never widens what a command works on."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from conversations.models import Session
from mirix.tenants.models import Organization
from tests.access.world import everything
from tests.factories import make_session

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "line",
    [
        ["rename", "--organization", "Acme", "--client", "", "new"],
        ["rename", "--organization", "Acme", "--user", "", "new"],
        ["prune_conversations", "--organization", ""],
        ["seal_sessions", "--organization", "", "--user", ""],
        ["seal_sessions", "--organization", "Acme", "--user", ""],
        ["audit", "--organization", ""],
        ["search_index", "rebuild", "--organization", ""],
        ["search_index", "status", "--organization", ""],
        ["replay_intake", "--organization", ""],
        ["auto_dream", "--organization", "Acme", "--user", ""],
        ["distill", "--organization", "Acme", "--user", ""],
        ["evolve", "--organization", "Acme", "--user", ""],
        ["export_skills", "--organization", "Acme", "--user", "", "--to", "/nowhere"],
        ["search", "pay", "--organization", "Acme", "--user", ""],
    ],
    ids=" ".join,
)
def test_it_is_refused_as_unknown_and_changes_nothing(line, owner):
    Organization.objects.filter(pk=owner.organization.pk).update(name="Acme")
    make_session(owner, [{"role": "user", "content": "Mine."}], state="open")
    Session.objects.update(last_turn_at="2020-01-01T00:00:00Z")
    before = everything()

    with pytest.raises(CommandError, match=r"unknown (organization|user|client) ''"):
        call_command(*line, stdout=io.StringIO(), stderr=io.StringIO())

    assert everything() == before
