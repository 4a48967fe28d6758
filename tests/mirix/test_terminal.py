"""What was stored commands no terminal: every command that prints it spells out what cannot be seen."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from mirix.tenants.audit import Act, Actor, record
from mirix.tenants.models import Notification, Organization
from mirix.text import HIDDEN
from skills.search.index import index_skill
from tests.factories import (
    make_client,
    make_content,
    make_experience,
    make_intake,
    make_key,
    make_member,
    make_owner,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
FORGED = "2026-01-01 00:00:00  organization.created"
HOSTILE = f"red\x1b[31m\x9b2J\u202e\U000e0041\r\n{FORGED}"
COMMANDS = {
    "audit": ["audit", "--organization"],
    "organizations": ["organizations"],
    "create_organization": ["create_organization"],
    "create_client": ["create_client", HOSTILE, "--organization"],
    "create_end_user": ["create_end_user", HOSTILE, "--organization"],
    "organization_settings": ["organization_settings", "--organization"],
    "remove_member": ["remove_member", HOSTILE, "--organization"],
    "rename": ["rename", HOSTILE, "--organization"],
    "erase": ["erase", "--user", HOSTILE, "--dry-run", "--organization"],
    "notify": ["notify"],
    "review list": ["review", "list", "--organization"],
    "review show": ["review", "show", "REVISION", "--organization"],
    "review approve": ["review", "approve", "REVISION", "--organization"],
    "skills list": ["skills", "list", "--organization"],
    "skills history": ["skills", "history", "pay", "--organization"],
    "skills diff": ["skills", "diff", "pay", "--organization"],
    "skills rollback": ["skills", "rollback", HOSTILE, "--to", HOSTILE, "--reason", "x", "--organization"],
    "search": ["search", "card", "--explain", "--organization"],
    "evolve": ["evolve", "--user", HOSTILE, "--organization"],
    "auto_dream": ["auto_dream", "--user", HOSTILE, "--organization"],
    "seal_sessions": ["seal_sessions", "--user", HOSTILE, "--organization"],
    "replay_intake": ["replay_intake", "--organization"],
    "prune_conversations": ["prune_conversations", "--dry-run", "--organization"],
}
"""Commands by what they do; those that end with `--organization` are given its id."""
SEVERAL_LINES = ("review show", "skills diff")
"""Those that show texts of several lines as such, each under its heading."""


@pytest.fixture
def hostile() -> dict[str, str]:
    """Return the id of an organization of which every text is hostile, stored past the services."""
    organization = Organization.objects.create(name=HOSTILE)
    owner = make_owner(organization, HOSTILE)
    client = make_client(organization, HOSTILE)
    make_key(client, name=HOSTILE)
    user = make_member(organization, "administrator", HOSTILE)
    record(
        organization=organization,
        actor=Actor(kind="user", id=HOSTILE[:64], name=HOSTILE),
        action=Act.CLIENT_CREATED,
        target=client,
        details={"name": HOSTILE, HOSTILE: [HOSTILE, None]},
    )
    Notification.objects.create(organization=organization, channel="email", error=HOSTILE)
    session = make_session(owner, [{"role": "user", "content": HOSTILE}], client)
    make_intake(owner, client, session_id="s-1", state="failed", error=HOSTILE, body={"messages": 7})
    content = make_content(name="pay", description=f"{HOSTILE} card", instructions=HOSTILE)
    index_skill(make_skill(owner, content))
    proposal = make_proposal(owner, make_content(description=HOSTILE), rationale=HOSTILE)
    proposal.experiences.set([make_experience(owner, session, title=HOSTILE, quote=HOSTILE, content=HOSTILE)])
    assert user.username == HOSTILE
    return {"organization": organization.pk, "revision": proposal.pk}


def run(hostile: dict[str, str], words: list[str], *more: str) -> str:
    """Return all that a command says, its refusal included."""
    words = [hostile["revision"] if word == "REVISION" else word for word in words]
    if words[-1] in ("--organization", "create_organization", "organizations"):
        words.append(hostile["organization"])
    said = StringIO()
    try:
        call_command(*words, *more, stdout=said, stderr=said)
    except CommandError as error:
        said.write(f"CommandError: {error}")
    return said.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_stored_text_stays_in_its_line_and_commands_nothing(hostile, name):
    said = run(hostile, COMMANDS[name])
    assert said
    assert not HIDDEN.search(said)
    if name not in (
        "review show",
        "skills diff",
    ):  # texts of several lines are shown as such there, each under its heading
        assert FORGED not in {line.strip()[: len(FORGED)] for line in said.splitlines()}


@pytest.mark.parametrize("name", ["audit", "organizations", "review show", "search"])
def test_json_holds_the_text_itself_and_no_command(hostile, name):
    said = run(hostile, COMMANDS[name], "--json")
    assert not HIDDEN.search(said)
    assert HOSTILE in _texts(json.loads(said)) or f"{HOSTILE} card" in _texts(json.loads(said))


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
