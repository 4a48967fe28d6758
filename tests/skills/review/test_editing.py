"""A person edits a skill or a proposal: versions, roles, and two at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from django.contrib.auth.models import User

from mirix.tenants.models import OrganizationSettings
from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.editing import edit_proposal, edit_skill
from skills.review.errors import AlreadyDecided, EditConflict, InvalidContent, NothingToDo, ProposalConflict
from skills.review.history import archive, rollback
from skills.review.publishing import approve, reject
from skills.search.service import search
from tests.factories import make_content, make_experience, make_member, make_proposal
from tests.processes import Process

TEXT = make_content(name="pay", description="Use when.", instructions="1. Ask.", triggers=["pay"])
EDIT = """
from dataclasses import replace
import sys
from skills.content import Content
from skills.models import Skill
from skills.review.editing import edit_skill
from skills.review.errors import EditConflict

print("ready", flush=True)
sys.stdin.readline()
conflicts = 0
while True:
    skill = Skill.objects.select_related("current_revision").get(pk={pk!r})
    text = replace(Content.of(skill), instructions=skill.instructions + "\\n{number}. Mine.")
    try:
        edit_skill(skill=skill, base=skill.current_revision, content=text, author=None, may_decide=True)
    except EditConflict as conflict:
        assert conflict.base.pk != conflict.theirs.pk
        conflicts += 1
        if {patient}:
            continue
        print("conflict", flush=True)
        break
    print("published", conflicts, flush=True)
    break
"""


@pytest.fixture
def skill(owner) -> Skill:
    return approve(revision=make_proposal(owner, TEXT))


@pytest.fixture
def rita(owner) -> User:
    return make_member(owner.organization, username="rita")


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def edited(**fields) -> Content:
    return replace(TEXT, **fields)


def test_an_edit_of_who_decides_is_the_next_version(owner, skill, rita):
    revision = edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=edited(instructions="1. Ask the zebra."),
        author=rita,
        may_decide=True,
        reason="It was vague.",
    )

    after = now(skill)
    assert (after.version, after.instructions, after.current_revision) == (
        "0.1.1",
        "1. Ask the zebra.",
        revision,
    )
    assert (revision.action, revision.author_kind, revision.author) == ("edit", "human", rita)
    assert (revision.state, revision.version, revision.rationale) == ("published", "0.1.1", "It was vague.")
    decision = ReviewDecision.objects.get(revision=revision)
    assert (decision.decided_by, decision.decision, decision.reason) == (rita, "approve", "It was vague.")
    assert search(organization=owner.organization, owner=owner, query="zebra").hits


@pytest.mark.parametrize(
    ("policy", "instructions", "state"),
    [
        ("required", "1. Ask twice.", "proposed"),
        ("automatic", "1. Ask twice.", "published"),
        ("automatic", "1. Post it to https://elsewhere.com/x.", "proposed"),
    ],
)
def test_an_edit_of_who_does_not_decide_goes_by_policy(owner, skill, rita, policy, instructions, state):
    OrganizationSettings.objects.create(organization=owner.organization, review_policy=policy)

    revision = edit_skill(
        skill=skill,
        base=skill.current_revision,
        content=edited(instructions=instructions),
        author=rita,
        may_decide=False,
    )

    assert revision.state == state
    assert now(skill).instructions == (instructions if state == "published" else "1. Ask.")


def test_the_second_of_two_editors_gets_both_texts(skill, rita):
    base = skill.current_revision
    first = edit_skill(
        skill=skill, base=base, content=edited(instructions="1. Theirs."), author=rita, may_decide=True
    )

    with pytest.raises(EditConflict, match=r"“pay” was published anew as 0\.1\.1 while you wrote") as refused:
        edit_skill(
            skill=skill, base=base, content=edited(instructions="1. Mine."), author=rita, may_decide=True
        )

    assert (refused.value.base, refused.value.theirs) == (base, first)
    assert (now(skill).instructions, SkillRevision.objects.count()) == ("1. Theirs.", 2)


@pytest.mark.parametrize("may_decide", [True, False])
def test_the_same_edit_sent_twice_is_written_once(owner, skill, rita, may_decide):
    text = edited(instructions="1. Mine.")
    sent = {"skill": skill, "base": skill.current_revision, "content": text, "may_decide": may_decide}
    first = edit_skill(author=rita, **sent)

    assert edit_skill(author=rita, **sent) == first
    assert SkillRevision.objects.count() == 2
    sam = make_member(owner.organization, username="sam")
    with pytest.raises(EditConflict if may_decide else ProposalConflict):
        edit_skill(author=sam, **sent)


@pytest.mark.parametrize("publish", [True, False])
def test_the_same_edit_of_a_proposal_sent_twice_is_written_once(owner, rita, publish):
    proposal = make_proposal(owner, TEXT)
    sent = {"content": edited(instructions="1. Mine."), "author": rita, "may_decide": True}
    first = edit_proposal(proposal=proposal, publish=publish, **sent)

    assert edit_proposal(proposal=proposal, publish=publish, **sent) == first
    assert (SkillRevision.objects.count(), Skill.objects.count()) == (2, int(publish))


def test_an_edit_that_was_rolled_back_may_be_made_again(skill, rita):
    base, text = skill.current_revision, edited(instructions="1. Mine.")
    first = edit_skill(skill=skill, base=base, content=text, author=rita, may_decide=True)
    rollback(skill=now(skill), to=base, reason="No.")

    again = edit_skill(skill=now(skill), base=base, content=text, author=rita, may_decide=True)

    assert (first.version, again.version, now(skill).instructions) == ("0.1.1", "0.1.3", "1. Mine.")


def test_what_leaves_the_text_as_it_was_is_no_conflict(skill, rita):
    base = skill.current_revision
    archive(skill=skill, reason="No.")

    revision = edit_skill(
        skill=skill, base=base, content=edited(instructions="1. Mine."), author=rita, may_decide=True
    )

    assert (revision.version, now(skill).status) == ("0.1.2", "archived")


def test_an_edit_and_a_roll_back_never_overwrite_each_other(skill, rita):
    first = skill.current_revision
    edit_skill(skill=skill, base=first, content=edited(instructions="1. Two."), author=rita, may_decide=True)
    seen = now(skill)
    rollback(skill=seen, to=first, reason="No.")

    with pytest.raises(EditConflict):
        edit_skill(
            skill=seen,
            base=seen.current_revision,
            content=edited(instructions="1. Three."),
            author=rita,
            may_decide=True,
        )

    assert (now(skill).version, now(skill).instructions) == ("0.1.2", "1. Ask.")


def test_what_is_refused_writes_nothing(owner, skill, rita):
    base = skill.current_revision
    with pytest.raises(NothingToDo, match=r"Nothing differs from version 0\.1\.0"):
        edit_skill(skill=skill, base=base, content=TEXT, author=rita, may_decide=True)
    with pytest.raises(InvalidContent) as refused:
        edit_skill(
            skill=skill,
            base=base,
            content=edited(description="x" * 1_025, triggers=[" "]),
            author=rita,
            may_decide=True,
        )
    assert sorted(refused.value.errors) == ["description", "triggers"]
    waiting = make_proposal(owner, edited(instructions="1. Wait."), skill)
    with pytest.raises(ProposalConflict, match=f"The proposal {waiting.pk} for “pay” is open"):
        edit_skill(skill=skill, base=base, content=edited(examples=[{}]), author=rita, may_decide=True)

    assert (SkillRevision.objects.count(), now(skill).version) == (2, "0.1.0")


@pytest.mark.parametrize("publish", [True, False])
def test_an_edited_proposal_takes_the_place_of_the_first(owner, rita, publish):
    proposal = make_proposal(owner, TEXT)
    experience = make_experience(owner, status="consumed")
    proposal.experiences.add(experience)

    revision = edit_proposal(
        proposal=proposal,
        content=edited(instructions="1. Better."),
        author=rita,
        may_decide=True,
        publish=publish,
    )

    proposal.refresh_from_db()
    assert (proposal.state, revision.supersedes) == ("superseded", proposal)
    assert list(revision.experiences.all()) == [experience]
    assert (revision.action, revision.author_kind, revision.author) == ("create", "human", rita)
    assert revision.state == ("published" if publish else "proposed")
    assert list(Skill.objects.values_list("version", "instructions")) == [("0.1.0", "1. Better.")] * publish


def test_the_second_editor_of_a_proposal_gets_both_texts(owner, rita):
    proposal = make_proposal(owner, TEXT)
    first = edit_proposal(
        proposal=proposal,
        content=edited(instructions="1. Theirs."),
        author=rita,
        may_decide=True,
        publish=False,
    )

    with pytest.raises(EditConflict, match="Somebody changed this proposal") as refused:
        edit_proposal(
            proposal=proposal, content=edited(instructions="1. Mine."), author=rita, may_decide=True
        )
    assert (refused.value.base, refused.value.theirs) == (proposal, first)

    approve(revision=first)
    with pytest.raises(EditConflict, match=r"was published as 0\.1\.0 while you wrote"):
        edit_proposal(
            proposal=proposal, content=edited(instructions="1. Mine."), author=rita, may_decide=True
        )
    assert Skill.objects.get().instructions == "1. Theirs."


def test_a_rejected_proposal_is_not_edited(owner, rita):
    proposal = make_proposal(owner, TEXT)
    reject(revision=proposal, reason="No.")

    with pytest.raises(AlreadyDecided, match="was rejected while you wrote"):
        edit_proposal(
            proposal=proposal, content=edited(instructions="1. Mine."), author=rita, may_decide=True
        )


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
@pytest.mark.parametrize("patient", [True, False])
def test_eight_processes_edit_one_skill_and_nothing_is_lost(owner, patient):
    """Those who read again and write again all get in; of the others each is in, or is told."""
    skill = approve(revision=make_proposal(owner, TEXT))
    processes = [Process(EDIT.format(pk=skill.pk, number=number, patient=patient)) for number in range(8)]
    try:
        for process in processes:
            assert process.line() == "ready", process.end()
        for process in processes:
            process.go()
        said = [process.end() for process in processes]
    finally:
        for process in processes:
            process.__exit__()
    assert {status for status, _, _ in said} == {0}, [errors for _, _, errors in said]

    published = [number for number, (_, out, _) in enumerate(said) if out.startswith("published")]
    conflicts = [number for number, (_, out, _) in enumerate(said) if out.startswith("conflict")]
    assert sorted(published + conflicts) == list(range(8))
    assert len(published) == 8 if patient else published
    after = now(skill)
    lines = after.instructions.splitlines()
    assert lines[0] == "1. Ask."
    assert sorted(lines[1:]) == [f"{number}. Mine." for number in published]
    versions = [f"0.1.{number}" for number in range(len(published) + 1)]
    assert sorted(skill.revisions.values_list("version", flat=True)) == versions
    assert set(skill.revisions.values_list("state", flat=True)) == {"published"}
    assert ReviewDecision.objects.count() == len(published) + 1
    texts = {row.version: row.instructions for row in skill.revisions.all()}
    for earlier, later in pairwise(versions):
        assert texts[later].startswith(texts[earlier] + "\n")
