"""`review list|show|approve|reject`."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command

from mirix.tenants.models import OrganizationSettings
from skills.content import Content
from skills.models import ReviewDecision, Skill
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db


def review(owner, *arguments: str, **options) -> str:
    out = io.StringIO()
    call_command("review", *arguments, organization=owner.organization.name, stdout=out, **options)
    return out.getvalue()


def test_list_shows_what_waits_the_most_important_first(owner, stranger):
    weak = make_proposal(owner, make_content(name="ask-first"))
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask."))
    edit = replace(Content.of(skill), instructions="1. Ask for the card.")
    strong = make_proposal(owner, edit, skill, risk_flags=["new_address"])
    strong.experiences.add(make_experience(owner, importance=1.0, credibility=0.9))
    make_proposal(owner, state="rejected")
    make_proposal(stranger)

    lines = review(owner, "list").splitlines()

    assert lines[0].split() == [
        "proposal",
        "skill",
        "action",
        "words",
        "evidence",
        "priority",
        "watch",
        "user",
    ]
    assert [line.split() for line in lines[1:]] == [
        [strong.pk, "pay", "edit", "+3", "−0", "1", "0.90", "1", "alice"],
        [weak.pk, "ask-first", "create", "+26", "−0", "0", "0.00", "–", "alice"],
    ]


def test_list_as_json(owner):
    proposal = make_proposal(owner, make_content(name="ask-first"))

    assert json.loads(review(owner, "list", json=True)) == [
        {
            "id": proposal.pk,
            "name": "ask-first",
            "user_id": "alice",
            "action": "create",
            "base_version": None,
            "merges": None,
            "words_added": 26,
            "words_removed": 0,
            "evidence": 0,
            "priority": 0.0,
            "risks": [],
            "unsupported": [],
            "created_at": proposal.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
    ]


def test_list_says_what_it_leaves_out(owner):
    for _ in range(3):
        make_proposal(owner)

    assert review(owner, "list", limit=1).splitlines()[-1] == "… and 2 more"
    with pytest.raises(CommandError, match="--limit: '0' is not a whole number from 1 to 10000"):
        review(owner, "list", "--limit", "0")


def test_an_empty_queue(owner):
    assert review(owner, "list") == f"Nothing waits in {owner.organization.name}.\n"
    assert review(owner, "list", json=True) == "[]\n"


def test_show_prints_changes_and_evidence(owner):
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask which card.\n2. Charge it."))
    content = replace(Content.of(skill), instructions="1. Ask which gift card.\n2. Charge it.")
    proposal = make_proposal(owner, content, skill, rationale="Seen twice.", risk_flags=["single_failure"])
    session = make_session(
        owner, [{"role": "user", "content": "No, use the other card."}], session_id="s-card"
    )
    proposal.experiences.add(make_experience(owner, session, title="Gift cards come first"))
    loose = make_experience(owner, session, title="Perhaps", verified=False, credibility=0.1)
    proposal.experiences.add(loose)

    assert review(owner, "show", proposal.pk) == (
        "pay\n"
        f"edit of 0.1.0, waiting for a decision · {proposal.pk} · by offline rules · user alice\n"
        "Seen twice.\n"
        "! Forbids or rules something out because of a single failure\n"
        "\n"
        "instructions  +1 −0\n"
        "  1. Ask which {+gift +}card.\n"
        "  2. Charge it.\n"
        "\n"
        "evidence (2)\n"
        "  0.72  Gift cards come first\n"
        "        “use the other card”\n"
        "        user critique, session s-card, turn 1\n"
        "  0.08  Perhaps\n"
        "        “use the other card”\n"
        "        user critique, session s-card, turn 1, not found word for word\n"
    )


def test_show_as_json(owner):
    proposal = make_proposal(owner, make_content(name="pay"))
    experience = make_experience(owner)
    proposal.experiences.add(experience)

    shown = json.loads(review(owner, "show", proposal.pk, json=True))

    assert (shown["id"], shown["state"], shown["skill_id"]) == (proposal.pk, "proposed", None)
    assert shown["changes"][0] == {
        "field": "name",
        "added": 1,
        "removed": 0,
        "segments": [{"kind": "insert", "text": "pay"}],
    }
    assert shown["evidence"][0]["quote"] == "use the other card"


def test_hostile_text_stays_inert(owner):
    content = make_content(
        name="pay",
        description="[bold red]sale[/] \x1b[2J\x1b]0;owned\x07 \u202eevil :smile:",
        instructions="1. <b>x</b>\r2. \x9b31m",
    )
    proposal = make_proposal(owner, content, rationale="\x1b[31mred")
    proposal.experiences.add(make_experience(owner, title="\x1b[5mblink", quote="[link=x]\u200b"))

    shown = review(owner, "show", proposal.pk)

    assert "[bold red]sale[/] \\u001b[2J\\u001b]0;owned\\u0007 \\u202eevil :smile:" in shown
    assert "1. <b>x</b>\\r2. \\u009b31m" in shown
    assert "“[link=x]\\u200b”" in shown
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
    assert not set(shown) & set("\x9b\u202e\u200b")


def test_approve_publishes(owner):
    proposal = make_proposal(owner, make_content(name="pay"))
    rita = make_member(owner.organization, role="reviewer", username="rita")

    said = review(owner, "approve", proposal.pk, by="rita", reason="Right.")

    skill = Skill.objects.get()
    assert said == f"Published pay 0.1.0 ({skill.pk}).\n"
    decision = ReviewDecision.objects.get()
    assert (decision.decision, decision.decided_by, decision.reason) == ("approve", rita, "Right.")
    assert json.loads(review(owner, "approve", proposal.pk, json=True)) == {
        "id": proposal.pk,
        "state": "published",
        "skill_id": skill.pk,
        "name": "pay",
        "version": "0.1.0",
    }


def test_reject_needs_a_reason(owner):
    proposal = make_proposal(owner, make_content(name="pay"))

    with pytest.raises(CommandError, match="a rejection needs a reason"):
        review(owner, "reject", proposal.pk)

    assert review(owner, "reject", proposal.pk, reason="Vague.") == f"Rejected pay ({proposal.pk}).\n"
    assert ReviewDecision.objects.get().reason == "Vague."
    with pytest.raises(CommandError, match=f"{proposal.pk} was rejected on "):
        review(owner, "approve", proposal.pk)


def test_only_reviewers_of_the_organization_decide(owner, stranger):
    proposal = make_proposal(owner)
    make_member(owner.organization, role="operator", username="otto")
    make_member(stranger.organization, role="reviewer", username="sam")

    for name in ("otto", "sam", "nobody", "a\x00b"):
        with pytest.raises(CommandError, match="may not review in organization"):
            review(owner, "approve", proposal.pk, by=name)

    assert not Skill.objects.exists()


def test_where_administrators_alone_decide_a_reviewer_does_not(owner):
    OrganizationSettings.objects.create(organization=owner.organization, deciding_role="administrator")
    skill, proposal = make_skill(owner), make_proposal(owner)
    make_member(owner.organization, role="reviewer", username="rita")
    make_member(owner.organization, role="administrator", username="ada")
    named = {"organization": owner.organization.name, "reason": "So.", "stdout": io.StringIO()}

    for words in (("review", "approve", proposal.pk), ("review", "reject", proposal.pk)):
        with pytest.raises(CommandError, match="'rita' may not review in organization"):
            call_command(*words, by="rita", **named)
    with pytest.raises(CommandError, match="'rita' may not review in organization"):
        call_command("skills", "archive", skill.pk, by="rita", **named)
    assert not ReviewDecision.objects.exists()

    call_command("review", "approve", proposal.pk, by="ada", **named)
    call_command("skills", "archive", skill.pk, by="ada", **named)
    assert ReviewDecision.objects.count() == 2


@pytest.mark.parametrize("action", ["show", "approve", "reject"])
def test_unknown_and_foreign_proposals_are_one_clear_line(owner, stranger, action):
    foreign = make_proposal(stranger)

    for name in (foreign.pk, "rev-none", "a\x00b"):
        with pytest.raises(CommandError, match="unknown proposal"):
            review(owner, action, name, reason="x")
    with pytest.raises(CommandError, match="which proposal"):
        review(owner, action)

    foreign.refresh_from_db()
    assert foreign.state == "proposed"


def test_an_unknown_organization_is_one_clear_line(db):
    with pytest.raises(CommandError, match="unknown organization 'nowhere'"):
        call_command("review", "list", organization="nowhere")


@pytest.mark.parametrize("place", [1, 3])
def test_the_proposal_may_stand_before_the_options_or_behind_them(owner, place):
    """As the README has it; argparse by itself takes an optional argument behind an option for unknown."""
    proposal = make_proposal(owner, make_content(name="ask-first"))
    proposal.experiences.add(make_experience(owner))
    words = ["approve", "--organization", owner.organization.name]
    words.insert(place, proposal.pk)

    call_command("review", *words, stdout=io.StringIO())

    assert Skill.objects.get().name == "ask-first"


def test_list_takes_no_proposal(owner):
    with pytest.raises(CommandError, match="`review list` takes no proposal"):
        review(owner, "list", "rev-1")


class TestMany:
    def test_each_is_decided_for_itself_and_says_what_came_of_it(self, owner, stranger):
        pay, ship = (make_proposal(owner, make_content(name=name)) for name in ("pay", "ship"))
        gone = make_proposal(owner, make_content(name="gone"), state="rejected")
        gone.decided_at = gone.created_at
        gone.save()
        foreign = make_proposal(stranger)
        out = io.StringIO()

        with pytest.raises(CommandError, match=r"^2 of 4 refused$"):
            call_command(
                "review", "approve", pay.pk, gone.pk, foreign.pk, ship.pk, pay.pk,
                organization=owner.organization.name, stdout=out,
            )  # fmt: skip

        ids = dict(Skill.objects.values_list("name", "pk"))
        lines = out.getvalue().splitlines()
        assert lines[0] == f"Published pay 0.1.0 ({ids['pay']})."
        assert lines[1].startswith(f"{gone.pk}: {gone.pk} was rejected on ")
        assert lines[2].startswith(f"{foreign.pk}: unknown proposal '{foreign.pk}' in organization")
        assert lines[3:] == [f"Published ship 0.1.0 ({ids['ship']})."]
        foreign.refresh_from_db()
        assert foreign.state == "proposed"

    def test_as_json_a_row_for_each(self, owner):
        pay, ship = (make_proposal(owner, make_content(name=name)) for name in ("pay", "ship"))
        out = io.StringIO()

        with pytest.raises(CommandError):
            call_command(
                "review", "reject", pay.pk, "rev-none", ship.pk, "--reason", "Vague.", "--json",
                "--organization", owner.organization.name, stdout=out,
            )  # fmt: skip

        assert json.loads(out.getvalue()) == [
            {"id": pay.pk, "state": "rejected", "name": "pay"},
            {
                "id": "rev-none",
                "error": f"unknown proposal 'rev-none' in organization '{owner.organization.name}'",
            },
            {"id": ship.pk, "state": "rejected", "name": "ship"},
        ]

    def test_all_are_in_the_members_name_and_for_one_reason(self, owner):
        rita = make_member(owner.organization, role="reviewer", username="rita")
        proposals = [make_proposal(owner) for _ in range(3)]

        review(owner, "approve", *(proposal.pk for proposal in proposals), by="rita", reason="Right.")

        decided = ReviewDecision.objects.values_list("revision", "decided_by", "reason")
        assert set(decided) == {(proposal.pk, rita.pk, "Right.") for proposal in proposals}

    def test_without_a_reason_none_is_rejected(self, owner):
        proposals = [make_proposal(owner) for _ in range(2)]

        with pytest.raises(CommandError, match="2 of 2 refused"):
            review(owner, "reject", *(proposal.pk for proposal in proposals))

        assert not ReviewDecision.objects.exists()

    def test_one_is_shown_at_a_time(self, owner):
        with pytest.raises(CommandError, match="`review show` shows one proposal"):
            review(owner, "show", "rev-1", "rev-2")


def test_what_lapses_is_not_called_rejected(owner):
    skill = make_skill(owner, make_content(name="pay", instructions="1. Ask."))
    late = make_proposal(owner, replace(Content.of(skill), instructions="1. Ask for the card."), skill)
    guess = replace(Content.of(skill), instructions="1. Guess.")
    theirs = make_proposal(owner, guess, skill, state="superseded")
    theirs.state, theirs.version = "published", "0.1.1"
    theirs.save()
    Skill.objects.update(current_revision=theirs, instructions=guess.instructions, version="0.1.1")

    said = review(owner, "reject", late.pk, reason="It moved on.")

    assert said == f"pay ({late.pk}) lapsed: its skill says something else by now.\n"
