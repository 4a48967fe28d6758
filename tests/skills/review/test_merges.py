"""One skill of two: what is proposed, what its approval does, and what stands in its way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.contrib.auth.models import User

from mirix.tenants.models import OrganizationSettings
from skills.content import Content
from skills.evolution.library import Library
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.editing import edit_proposal, edit_skill
from skills.review.errors import BaseConflict, NothingToDo, ProposalConflict
from skills.review.history import archive, quarantine, release, restore, rollback
from skills.review.merges import propose_merge
from skills.review.proposals import propose
from skills.review.publishing import approve, reject
from skills.search.service import search
from skills.selectors.skills import merged_skills
from tests.factories import make_content, make_experience, make_member, make_owner, make_proposal, make_skill

PAY = make_content(
    name="pay", description="Pay an order.", instructions="1. Ask for the card.", triggers=["pay"],
    filter_tags={"team": "billing", "env": "prod"},
)  # fmt: skip
SETTLE = make_content(
    name="settle-up", description="Settle a zebra.", instructions="1. Look at the balance.",
    triggers=["settle"], filter_tags={"team": "billing"},
)  # fmt: skip


@pytest.fixture
def rita(owner) -> User:
    return make_member(owner.organization, username="rita")


def published(owner, content: Content) -> Skill:
    proposal = make_proposal(owner, content)
    proposal.experiences.add(make_experience(owner, status="consumed", filter_tags=content.filter_tags))
    return approve(revision=proposal)


@pytest.fixture
def target(owner) -> Skill:
    return published(owner, PAY)


@pytest.fixture
def source(owner) -> Skill:
    return published(owner, SETTLE)


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def support(skill: Skill) -> list[str]:
    return sorted(skill.current_revision.experiences.values_list("pk", flat=True))


def found(owner, query: str) -> list[str]:
    return [hit.skill.name for hit in search(organization=owner.organization, owner=owner, query=query).hits]


def test_a_merge_is_proposed_with_what_both_say_and_the_evidence_of_the_source(owner, source, target, rita):
    proposal = propose_merge(source=source, target=target, author=rita, reason="They are one.")

    assert (proposal.state, proposal.skill, proposal.base) == ("proposed", target, target.current_revision)
    assert (proposal.merged_from, proposal.action) == (source.current_revision, "edit")
    assert (proposal.author, proposal.author_kind, proposal.rationale) == (rita, "human", "They are one.")
    assert (proposal.name, proposal.description) == ("pay", "Pay an order.")
    assert "Ask for the card." in proposal.instructions
    assert "Look at the balance." in proposal.instructions
    assert proposal.triggers == ["pay", "settle"]
    assert proposal.filter_tags == {"team": "billing"}
    assert sorted(proposal.experiences.values_list("pk", flat=True)) == support(source)
    assert (now(source).status, now(target).version) == ("active", "0.1.0")


def test_its_approval_publishes_one_and_archives_the_other(owner, source, target, rita):
    proposal = propose_merge(source=source, target=target)
    evidence = support(source)

    approved = approve(revision=proposal, decided_by=rita)

    assert (approved.pk, approved.version, support(approved)) == (target.pk, "0.1.1", evidence)
    gone = now(source)
    assert (gone.status, gone.version, gone.instructions) == ("archived", "0.1.1", SETTLE.instructions)
    assert support(gone) == evidence
    decision = ReviewDecision.objects.get(revision=gone.current_revision)
    assert (decision.decided_by, decision.reason) == (rita, "Merged into “pay” 0.1.1.")
    assert found(owner, "look at the balance") == ["pay"]
    assert found(owner, "zebra") == []


def test_approving_it_again_changes_nothing(source, target):
    proposal = propose_merge(source=source, target=target)
    approve(revision=proposal)
    before = list(SkillRevision.objects.order_by("pk").values())

    assert approve(revision=proposal).version == "0.1.1"

    assert list(SkillRevision.objects.order_by("pk").values()) == before


def test_asking_again_while_it_waits_returns_what_waits(source, target):
    proposal = propose_merge(source=source, target=target)

    assert propose_merge(source=source, target=target, reason="Again.") == proposal
    assert SkillRevision.objects.count() == 3


def test_both_are_as_they_were_when_it_is_rejected(source, target):
    proposal = propose_merge(source=source, target=target)

    assert reject(revision=proposal, reason="They are two.").state == "rejected"

    assert (now(source).status, now(source).version, now(target).version) == ("active", "0.1.0", "0.1.0")
    assert set(proposal.experiences.values_list("status", flat=True)) == {"consumed"}


def test_what_amends_a_merge_is_one_too(owner, source, target, rita):
    proposal = propose_merge(source=source, target=target)
    text = replace(Content.of(proposal), instructions=f"{proposal.instructions}\n3. Say thanks.")
    lesson = make_experience(owner, filter_tags={"team": "billing"})

    amended = propose(
        owner=owner, content=text, target_revision=proposal, action="edit", author_kind="offline",
        experiences=[lesson], rationale="Seen.",
    )  # fmt: skip
    assert amended.merged_from == source.current_revision
    edit_proposal(proposal=amended, content=replace(text, description="Both."), author=rita, may_decide=True)

    assert (now(source).status, now(target).description) == ("archived", "Both.")
    assert set(support(now(target))) == {*support(source), lesson.pk}


def test_it_waits_for_a_decision_whatever_the_policy_says(owner, source, target, rita):
    OrganizationSettings.objects.create(organization=owner.organization, review_policy="automatic")
    proposal = propose_merge(source=source, target=target)
    text = replace(Content.of(proposal), description="Pay and settle.")

    edited = edit_proposal(proposal=proposal, content=text, author=rita, may_decide=False)

    assert (edited.state, now(source).status) == ("proposed", "active")


def test_a_source_that_says_something_else_by_now_is_a_conflict(source, target):
    proposal = propose_merge(source=source, target=target)
    edit_skill(
        skill=source, base=source.current_revision, content=replace(SETTLE, description="New."),
        author=None, may_decide=True,
    )  # fmt: skip

    with pytest.raises(BaseConflict, match=r"takes in version 0\.1\.0 of “settle-up”, which is at 0\.1\.1"):
        approve(revision=proposal)

    assert (now(source).status, now(target).version) == ("active", "0.1.0")
    assert reject(revision=proposal, reason="It moved on.").state == "superseded"
    assert propose_merge(source=now(source), target=target).merged_from.version == "0.1.1"


def test_a_source_that_was_archived_meanwhile_stays_so(source, target):
    proposal = propose_merge(source=source, target=target)
    archive(skill=source, reason="No.")

    assert approve(revision=proposal).version == "0.1.1"
    assert (now(source).status, now(source).version) == ("archived", "0.1.1")


@pytest.mark.parametrize(("take_out", "status"), [(archive, "archived"), (quarantine, "quarantined")])
def test_a_target_out_of_use_takes_nothing_in(source, target, take_out, status):
    """Agents would be left with neither of the two."""
    proposal = propose_merge(source=source, target=target)
    take_out(skill=target, reason="not now")

    with pytest.raises(
        BaseConflict, match=f"into “pay”, which is {status} by now: bring that one back first"
    ):
        approve(revision=proposal)

    assert (now(source).status, now(target).status) == ("active", status)
    assert now(target).instructions == PAY.instructions
    (restore if status == "archived" else release)(skill=now(target), reason="now")
    assert "balance" in approve(revision=proposal).instructions


def test_a_target_that_moved_on_takes_it_in_where_it_fits(owner, source, target):
    newer = approve(revision=make_proposal(owner, replace(PAY, description="Pay it."), target))
    proposal = propose_merge(source=source, target=newer)
    rollback(skill=newer, to=target.current_revision, reason="No.")

    approved = approve(revision=proposal)

    assert (approved.version, approved.description) == ("0.1.3", "Pay an order.")
    assert "Look at the balance." in approved.instructions
    assert now(source).status == "archived"


def test_what_waits_for_the_source_lapses(owner, source, target):
    change = make_proposal(owner, replace(SETTLE, description="New."), source)
    lesson = make_experience(owner, status="consumed")
    change.experiences.add(lesson)

    approve(revision=propose_merge(source=source, target=target))

    change.refresh_from_db()
    lesson.refresh_from_db()
    assert (change.state, lesson.status) == ("superseded", "pending")
    assert ReviewDecision.objects.get(revision=change).reason == "Merged into “pay” 0.1.1."


def test_what_cannot_be_merged(owner, stranger, source, target):
    mate = make_owner(owner.organization, "bob")
    gone = make_skill(owner, status="archived")

    with pytest.raises(NothingToDo, match="into itself"):
        propose_merge(source=target, target=target)
    for other in (make_skill(mate), make_skill(stranger)):
        with pytest.raises(NothingToDo, match="belong to different end users"):
            propose_merge(source=other, target=target)
    for pair in ((gone, target), (target, gone)):
        with pytest.raises(NothingToDo, match=f"“{gone.name}” is out of use"):
            propose_merge(source=pair[0], target=pair[1])
    make_proposal(owner, replace(PAY, description="Waits."), target)
    with pytest.raises(ProposalConflict, match="is open; amend that one"):
        propose_merge(source=source, target=target)

    assert not SkillRevision.objects.filter(merged_from__isnull=False).exists()


def test_a_skill_that_was_merged_counts_as_the_one_it_went_into(owner, source, target):
    approve(revision=propose_merge(source=source, target=target))
    last = published(owner, make_content(name="checkout", instructions="1. Close the basket first."))
    assert merged_skills(owner=owner) == {source.pk: target.pk}

    near, _ = Library(owner).near(replace(SETTLE, name="settle-up-2"))
    assert (near.skill_id, near.status) == (target.pk, "active")
    assert Library(owner).near(Content.of(now(target)), except_key=target.pk) is None

    approve(revision=propose_merge(source=now(target), target=last))
    assert merged_skills(owner=owner) == {source.pk: last.pk, target.pk: last.pk}
    assert Library(owner).near(replace(SETTLE, name="settle-up-2"))[0].skill_id == last.pk

    restore(skill=now(source), reason="It was better alone.")
    assert merged_skills(owner=owner) == {target.pk: last.pk}
    assert Library(owner).near(replace(SETTLE, name="settle-up-2"))[0].skill_id == source.pk


def test_two_that_went_into_each_other_stay_two(owner, source, target):
    approve(revision=propose_merge(source=source, target=target))
    restore(skill=now(source), reason="Back.")
    approve(revision=propose_merge(source=now(target), target=now(source)))
    archive(skill=now(source), reason="No.")

    assert merged_skills(owner=owner) == {}
    assert len(Library(owner).entries) == 2
