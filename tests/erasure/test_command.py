"""`erase` on the command line: asked twice, counted before, reported after."""

from __future__ import annotations

import io
import json
import sys

import pytest
from django.core.management import CommandError, call_command

from conversations.models import Session
from mirix.tenants.models import Client, EndUser, ErasureReceipt
from skills.models import Skill
from tests.factories import make_client, make_intake, make_owner, make_session, make_skill

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("erase", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def organization_of(owner) -> tuple[str, str]:
    return "--organization", owner.organization.name


def test_an_end_user(owner):
    make_session(owner, [{"role": "user", "content": "One."}])

    out = run("--user", "alice", "--yes", *organization_of(owner))

    receipt = ErasureReceipt.objects.get()
    assert out.splitlines() == [
        f"3 rows erased; {receipt.pk} is the receipt.",
        "         1  conversations.conversationmessage",
        "         1  conversations.session",
        "         1  tenants.enduser",
    ]
    assert (receipt.actor_kind, receipt.kind) == ("command", "end_user")
    assert not EndUser.objects.filter(pk=owner.end_user.pk).exists()


def test_a_client_as_json(owner):
    client = make_client(owner.organization, "robot")
    make_intake(owner, client)

    answer = json.loads(run("--client", "robot", "--yes", "--json", *organization_of(owner)))

    assert (answer["kind"], answer["subject_id"], answer["dry_run"]) == ("client", client.pk, False)
    assert answer["receipt"] == ErasureReceipt.objects.get().pk
    assert answer["counts"] == {"conversations.intakerecord": 1, "tenants.enduser": 1}
    assert Client.objects.filter(pk=client.pk).exists()


def test_a_skill(owner):
    skill = make_skill(owner)
    assert run("--skill", skill.pk, "--yes", *organization_of(owner)).startswith("2 rows erased")
    assert not Skill.objects.exists()


def test_a_dry_run_says_what_would_go_and_asks_nobody(owner):
    make_session(owner)
    assert run("--user", "alice", "--dry-run", *organization_of(owner)).startswith("2 rows would go.")
    assert (Session.objects.count(), ErasureReceipt.objects.count()) == (1, 0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_types_the_name_means_it(owner, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Terminal("alice\n"))
    assert run("--user", "alice", *organization_of(owner)).startswith("1 row erased")


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [
        (Terminal("bob\n"), "that is another name; nothing was erased"),
        (Terminal(""), "that is another name; nothing was erased"),
        (io.StringIO("alice\n"), "nobody is there to confirm"),
    ],
)
def test_whoever_does_not_erases_nothing(owner, monkeypatch, stdin, reason):
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(CommandError, match=reason):
        run("--user", "alice", *organization_of(owner))
    assert EndUser.objects.filter(pk=owner.end_user.pk).exists()


@pytest.mark.parametrize("what", ["--user", "--client", "--skill"])
def test_what_is_unknown_or_a_strangers_is_one_line(owner, stranger, what):
    names = {
        "--user": make_owner(stranger.organization, "bob").end_user.user_id,
        "--client": make_client(stranger.organization, "robot").name,
        "--skill": make_skill(stranger).pk,
    }
    with pytest.raises(CommandError, match=f"unknown {what[2:]}"):
        run(what, names[what], "--yes", *organization_of(owner))
    assert not ErasureReceipt.objects.exists()


@pytest.mark.parametrize("what", ["--user", "--client", "--skill"])
def test_what_a_script_has_left_empty_is_one_line(owner, what):
    with pytest.raises(CommandError, match=f"unknown {what[2:]} ''"):
        run(what, "", "--yes", *organization_of(owner))
    assert not ErasureReceipt.objects.exists()
