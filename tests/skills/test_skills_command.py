"""`skills list|history|diff|rollback|archive|restore|quarantine|release`."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command

from skills.content import Content
from skills.models import ReviewDecision, Skill
from skills.review.publishing import approve
from tests.factories import make_content, make_member, make_owner, make_proposal, make_skill

pytestmark = pytest.mark.django_db


def run(owner, *arguments: str) -> str:
    out = io.StringIO()
    call_command("skills", *arguments, "--organization", owner.organization.name, stdout=out)
    return out.getvalue().rstrip("\n")


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


@pytest.fixture
def skill(owner) -> Skill:
    first = approve(revision=make_proposal(owner, make_content(name="pay", instructions="1. Ask.")))
    return approve(
        revision=make_proposal(owner, replace(Content.of(first), instructions="1. Ask twice."), first)
    )


def test_list(owner, skill, stranger):
    make_skill(stranger)

    assert run(owner, "list").split() == ["0.1.1", "active", "pay", skill.pk, "alice"]
    [row] = json.loads(run(owner, "list", "--json"))
    assert (row["id"], row["version"], row["status"], row["user_id"]) == (
        skill.pk,
        "0.1.1",
        "active",
        "alice",
    )
    assert run(owner, "list", "--user", "bob") == "No skill yet."


def test_history_marks_the_version_of_today(owner, skill):
    lines = [line.split()[:5] for line in run(owner, "history", "pay").splitlines()]

    first, second = skill.revisions.get(version="0.1.0"), skill.revisions.get(version="0.1.1")
    assert lines[1:] == [
        ["*", "0.1.1", second.pk, "edit", "published"],
        ["0.1.0", first.pk, "create", "published", "offline"],
    ]
    data = json.loads(run(owner, "history", skill.pk, "--json"))
    assert [row["version"] for row in data["revisions"]] == ["0.1.1", "0.1.0"]


def test_diff(owner, skill):
    assert run(owner, "diff", "pay").splitlines() == [
        "pay: 0.1.0 → 0.1.1  +1 −0",
        "",
        "instructions  +1 −0",
        "  1. Ask{+ twice+}.",
    ]
    data = json.loads(run(owner, "diff", "pay", "--from", "0.1.1", "--to", "0.1.0", "--json"))
    assert (data["from"]["version"], data["to"]["version"]) == ("0.1.1", "0.1.0")
    assert data["changes"][0]["segments"][1] == {"kind": "delete", "text": " twice"}


def test_a_roll_back_and_its_undoing(owner, skill):
    make_member(owner.organization, "reviewer", "rita")

    said = run(owner, "rollback", "pay", "--to", "0.1.0", "--reason", "No.", "--by", "rita")

    assert said == f"pay says what 0.1.0 said, as 0.1.2 ({skill.pk})."
    decision = ReviewDecision.objects.get(revision=now(skill).current_revision)
    assert (decision.decided_by_name, decision.reason) == ("rita", "No.")
    data = json.loads(run(owner, "rollback", "pay", "--to", "0.1.1", "--reason", "Yes.", "--json"))
    assert (data["version"], data["revision_id"]) == ("0.1.3", now(skill).current_revision_id)
    assert Content.of(now(skill)) == Content.of(skill)


def test_out_of_use_and_back(owner, skill):
    for act, status in (
        ("archive", "archived"),
        ("restore", "active"),
        ("quarantine", "quarantined"),
        ("release", "active"),
    ):
        assert run(owner, act, "pay", "--reason", "So.").startswith(f"pay is {status}, as ")
        assert now(skill).status == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["history"], "which skill"),
        (["history", "none"], "unknown skill 'none'"),
        (["list", "pay"], "takes no skill"),
        (["rollback", "pay", "--reason", "x"], "roll back to which version"),
        (["rollback", "pay", "--to", "9.9.9", "--reason", "x"], "There is no revision '9.9.9'"),
        (["rollback", "pay", "--to", "0.1.1", "--reason", "x"], "says what 0.1.1 said"),
        (["archive", "pay"], "to archive needs a reason"),
        (["restore", "pay", "--reason", "x"], "is not archived"),
        (["archive", "pay", "--reason", "x", "--by", "nobody"], "'nobody' may not review"),
    ],
)
def test_what_is_refused_is_one_line_and_changes_nothing(owner, skill, arguments, message):
    with pytest.raises(CommandError, match=message) as refused:
        run(owner, *arguments)

    assert "\n" not in str(refused.value)
    assert (now(skill).version, now(skill).status) == ("0.1.1", "active")


def test_a_name_of_several_end_users_needs_one(owner, skill):
    bobs = make_skill(make_owner(owner.organization, "bob"), make_content(name="pay"))

    with pytest.raises(CommandError, match="several end users have a skill 'pay'"):
        run(owner, "archive", "pay", "--reason", "So.")
    run(owner, "archive", "pay", "--reason", "So.", "--user", "bob")

    assert (now(bobs).status, now(skill).status) == ("archived", "active")


def test_a_strangers_skill_is_unknown(stranger, skill):
    with pytest.raises(CommandError, match="unknown skill"):
        run(stranger, "archive", skill.pk, "--reason", "So.")


def test_merge_proposes_and_says_what_is_archived_then(owner, skill):
    other = make_skill(owner, make_content(name="settle", instructions="1. Look at the balance."))

    said = run(owner, "merge", "settle", "--into", "pay", "--reason", "They are one.")

    proposal = skill.revisions.get(state="proposed")
    assert said == (f"{proposal.pk} waits for a decision: pay takes settle in, which is archived then.")
    assert (proposal.rationale, proposal.merged_from) == ("They are one.", other.current_revision)
    data = json.loads(run(owner, "merge", "settle", "--into", skill.pk, "--json"))
    assert (data["id"], data["skill_id"], data["merged_from"]) == (proposal.pk, skill.pk, other.pk)
    out = io.StringIO()
    call_command("review", "show", proposal.pk, "--organization", owner.organization.name, stdout=out)
    assert "takes in settle 0.1.0, which is archived then" in out.getvalue()


def test_what_cannot_be_merged_is_one_line(owner, skill):
    make_skill(make_owner(owner.organization, "bob"), make_content(name="settle"))

    for arguments, message in (
        ((), "merge into which skill"),
        (("--into", "settle"), "unknown skill 'settle'"),
        (("--into", "pay"), "cannot be merged into itself"),
    ):
        with pytest.raises(CommandError, match=message):
            run(owner, "merge", "pay", *arguments)
