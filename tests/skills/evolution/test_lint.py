"""A library looked over: twins with what merging them comes to, and texts that cannot serve."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirix.llm.embeddings import get_endpoint
from mirix.tenants.models import OrganizationSettings
from skills.content import Content
from skills.evolution.lint import lint
from skills.models import Skill, SkillEmbedding, SkillRevision
from skills.review.errors import AgainstPolicy
from skills.review.merges import propose_merge
from skills.review.publishing import approve
from skills.search.embedding import space_of
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db

NO_TRIGGERS = "It has no triggers: a search by what an agent sees may miss it."
STEPS = "1. Ask which card to use before you charge it.\n2. Read the amount back and wait for a yes."


def rules(owner) -> list[tuple[str, str]]:
    return [(finding.view.content.name, finding.rule) for finding in lint(owner=owner).findings]


def names(owner) -> list[tuple[str, str, str]]:
    twins = lint(owner=owner).twins
    return [(item.keep.content.name, item.drop.content.name, item.near.measure) for item in twins]


def test_a_library_without_faults_is_clean(owner, stranger):
    make_skill(owner, make_content(name="pay-order"))
    make_skill(stranger, make_content(name="pay-orders"))

    report = lint(owner=owner)

    assert (report.is_clean, report.looked_at, report.without_vector) == (True, 1, 0)


def test_twins_come_with_what_one_would_say_of_the_other(owner):
    first = make_skill(owner, make_content(name="pay-order", instructions=STEPS, triggers=["pay_order"]))
    second = make_skill(
        owner,
        make_content(name="settle-bill", instructions=f"{STEPS}\n3. Send the receipt.", triggers=["bill"]),
    )

    [twins] = lint(owner=owner).twins

    assert (twins.keep.skill_id, twins.drop.skill_id) == (first.pk, second.pk)
    assert twins.near.measure == "words"
    assert twins.adds == ["3. Send the receipt.", "trigger: bill"]
    assert twins.merged == replace(
        Content.of(first), instructions=f"{STEPS}\n3. Send the receipt.", triggers=["pay_order", "bill"]
    )
    assert {skill.version for skill in Skill.objects.all()} == {"0.1.0"}


def test_what_more_sessions_taught_is_kept_and_what_is_in_use_before_that(owner):
    make_skill(owner, make_content(name="pay-order"))
    taught = make_skill(owner, make_content(name="pay-orders"))
    taught.current_revision.experiences.add(make_experience(owner, status="consumed"))
    assert names(owner) == [("pay-orders", "pay-order", "name")]

    Skill.objects.filter(pk=taught.pk).update(status="quarantined")
    assert names(owner) == [("pay-order", "pay-orders", "name")]

    Skill.objects.filter(pk=taught.pk).update(status="archived")
    assert names(owner) == []


def test_a_session_that_was_sent_again_under_another_id_taught_once(owner):
    skills = [make_skill(owner, make_content(name=name)) for name in ("pay-order", "pay-orders")]
    for skill, hashes in zip(skills, (["a" * 64, "b" * 64], ["c" * 64] * 3), strict=True):
        for each in hashes:
            session = make_session(owner, history_hash=each)
            skill.current_revision.experiences.add(make_experience(owner, session, status="consumed"))

    assert names(owner) == [("pay-order", "pay-orders", "name")]


def test_proposals_are_looked_at_too(owner):
    skill = make_skill(owner, make_content(name="pay-order"))
    make_proposal(owner, make_content(name="pay-orders"))
    make_proposal(owner, make_content(name="pay-order", triggers=[]), skill=skill)

    assert names(owner) == [("pay-order", "pay-orders", "name")]
    assert rules(owner) == [("pay-order", "no_triggers")]


def test_texts_that_cannot_serve(owner):
    make_skill(owner, make_content(name="silent", triggers=[], instructions="1. Wait for it."))
    make_skill(owner, make_content(name="bare", description="Use it.", instructions="1. Look around."))
    make_skill(owner, make_content(name="long", instructions="i" * 11_000))
    make_skill(owner, make_content(name="hidden", instructions="1. Pay\u202e it now."))
    make_skill(owner, make_content(name="mixed", instructions="1. Open p\u0430ypal soon."))
    make_skill(owner, make_content(name="wide", instructions="1. See below.", triggers=["t" * 600]))
    doubted = make_skill(owner, make_content(name="doubted", instructions="1. Hope for the best."))
    row = make_experience(owner, status="consumed", verified=False, credibility=0.3)
    doubted.current_revision.experiences.add(row)

    assert rules(owner) == [
        ("silent", "no_triggers"),
        ("bare", "bare_description"),
        ("long", "near_size_limit"),
        ("hidden", "hidden_characters"),
        ("mixed", "lookalike_letters"),
        ("wide", "invalid"),
        ("doubted", "unproven"),
    ]
    doubted.current_revision.experiences.add(make_experience(owner, status="consumed"))
    assert ("doubted", "unproven") not in rules(owner)


def test_what_means_the_same_by_the_vectors_in_store(owner, stranger, endpoint):
    first = make_skill(owner, make_content(name="pay-order", instructions="1. Ask for the card."))
    second = make_skill(owner, make_content(name="settle-bill", instructions="1. Wait for a yes."))
    make_skill(owner, make_content(name="lone-skill", instructions="1. Nobody embedded this."))
    foreign = make_skill(stranger, make_content(name="other", instructions="1. Elsewhere."))
    space = space_of(get_endpoint())

    def place(skill, *vector):
        SkillEmbedding.objects.update_or_create(
            skill=skill,
            space=space,
            organization=skill.organization,
            end_user=skill.end_user,
            defaults={"vector": list(vector), "dimensions": 2, "text_hash": "x"},
        )

    place(first, 1.0, 0.0)
    place(second, 0.921, 0.3896)
    place(foreign, 1.0, 0.0)
    report = lint(owner=owner)
    assert [(item.near.measure, round(item.near.score, 2)) for item in report.twins] == [("meaning", 0.92)]
    assert report.without_vector == 1

    place(second, 0.919, 0.3942)
    assert lint(owner=owner).twins == []
    assert endpoint.script.requests == []


def test_the_queries_do_not_grow_with_the_library(owner, django_assert_num_queries):
    make_skill(owner, make_content(name="first", instructions="1. Alpha."))
    make_skill(owner, make_content(name="firsts", instructions="1. Beta."))
    with CaptureQueriesContext(connection) as few:
        lint(owner=owner)
    for number in range(20):
        make_skill(owner, make_content(name=f"n{number}-skill", instructions=f"{number}. Do {number}."))
    with django_assert_num_queries(len(few)):
        lint(owner=owner)


def run(owner, *options: str) -> None:
    call_command("skills_lint", "--organization", owner.organization.name, *options)


def test_the_command_says_what_it_found_and_exits_with_one(owner, capsys):
    make_skill(owner, make_content(name="pay-order", instructions="1. Ask.", triggers=["pay"]))
    make_skill(owner, make_content(name="pay-orders", instructions="1. Wait.", triggers=[]))

    with pytest.raises(SystemExit) as ended:
        run(owner)

    first, second = Skill.objects.order_by("created_at")
    assert ended.value.code == 1
    assert capsys.readouterr().out.splitlines() == [
        f"near-duplicates (by name): merge pay-orders ({second.pk}) into pay-order ({first.pk}), which adds:",
        "    + 2. Wait.",
        f"    ./run skills merge {second.pk} --into {first.pk} --organization {owner.organization.pk}",
        f"no_triggers: pay-orders ({second.pk}): {NO_TRIGGERS}",
        "2 skills looked at; 2 found.",
    ]


def test_with_four_eyes_the_command_says_who_proposes(owner, capsys):
    make_skill(owner, make_content(name="pay-order", instructions="1. Ask."))
    make_skill(owner, make_content(name="pay-orders", instructions="1. Wait."))
    OrganizationSettings.objects.create(organization=owner.organization, four_eyes=True)
    rita, sam = (make_member(owner.organization, username=name) for name in ("rita", "sam"))
    with pytest.raises(SystemExit):
        run(owner)
    [printed] = [line for line in capsys.readouterr().out.splitlines() if "./run " in line]
    assert printed.endswith(" --by USERNAME")

    command = printed.strip().removeprefix("./run ").replace("USERNAME", rita.username)
    call_command(*shlex.split(command), "--reason", "They are one.")

    proposal = SkillRevision.objects.get(state="proposed")
    assert (proposal.author, proposal.rationale) == (rita, "They are one.")
    with pytest.raises(AgainstPolicy, match="is your own text"):
        approve(revision=proposal, decided_by=rita)
    assert approve(revision=proposal, decided_by=sam).instructions == "1. Ask.\n2. Wait."


def test_what_it_prints_does_what_it_says(owner, capsys):
    first = make_skill(owner, make_content(name="pay-order", instructions="1. Ask.", triggers=["pay"]))
    second = make_skill(owner, make_content(name="pay-orders", instructions="1. Wait.", triggers=["pay"]))

    def linted() -> list[str]:
        with pytest.raises(SystemExit):
            run(owner)
        return [line.strip() for line in capsys.readouterr().out.splitlines() if "./run " in line]

    [printed] = linted()
    call_command(*shlex.split(printed.removeprefix("./run ")))
    proposal = SkillRevision.objects.for_owner(owner).get(state="proposed")
    assert (proposal.skill, proposal.merged_from) == (first, second.current_revision)
    assert proposal.instructions == "1. Ask.\n2. Wait."

    capsys.readouterr()
    [printed] = linted()
    assert printed == f"./run review show {proposal.pk} --organization {owner.organization.pk}"
    call_command(*shlex.split(printed.removeprefix("./run ")))

    approve(revision=proposal)
    capsys.readouterr()
    run(owner)
    assert "nothing found" in capsys.readouterr().out


def test_a_new_skill_that_waits_is_decided_before_it_is_merged(owner, capsys):
    skill = make_skill(owner, make_content(name="pay-order", triggers=["pay"]))
    waiting = make_proposal(owner, make_content(name="pay-orders", triggers=["pay"]))

    with pytest.raises(SystemExit):
        run(owner, "--json")

    [found] = json.loads(capsys.readouterr().out)["near_duplicates"]
    assert (found["keep"]["skill_id"], found["drop"]["revision_id"]) == (skill.pk, waiting.pk)
    assert found["next"] == [f"./run review show {waiting.pk} --organization {owner.organization.pk}"]


def test_what_was_taken_in_once_is_compared_no_more(owner):
    target = make_skill(owner, make_content(name="settle-bill", instructions="1. Ask."))
    source = make_skill(owner, make_content(name="pay-order", instructions=STEPS))
    approve(revision=propose_merge(source=source, target=target))
    assert names(owner) == []

    make_skill(owner, make_content(name="pay-orders", instructions="1. Something else."))
    assert names(owner) == []
    target.refresh_from_db()
    assert "Read the amount" in target.instructions

    make_skill(
        owner, make_content(name="settle-bills", instructions="1. Weigh it.", description="Of scales.")
    )
    assert ("settle-bill", "settle-bills", "name") in names(owner)


def test_the_command_in_json_and_on_a_clean_library(owner, stranger, capsys):
    make_skill(owner, make_content(name="pay-order", triggers=["pay"]))
    run(owner, "--user", owner.end_user.user_id, "--json")
    clean = {"looked_at": 1, "without_vector": 0, "near_duplicates": [], "findings": []}
    assert json.loads(capsys.readouterr().out) == clean

    make_skill(owner, make_content(name="pay-orders", triggers=["pay"]))
    with pytest.raises(SystemExit):
        run(owner, "--json")
    [found] = json.loads(capsys.readouterr().out)["near_duplicates"]
    assert (found["user_id"], found["measure"], found["score"]) == (owner.end_user.user_id, "name", 1.0)
    assert (found["keep"]["name"], found["drop"]["name"], found["adds"]) == ("pay-order", "pay-orders", [])
    assert found["merged"]["name"] == "pay-order"

    run(stranger, "--json")
    assert json.loads(capsys.readouterr().out)["looked_at"] == 0
    with pytest.raises(CommandError, match="unknown user 'nobody'"):
        run(owner, "--user", "nobody")
