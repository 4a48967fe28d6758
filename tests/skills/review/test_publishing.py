from __future__ import annotations

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillPosting, SkillRevision
from skills.review.errors import (
    AlreadyDecided,
    BaseConflict,
    InvalidContent,
    ReasonRequired,
    UnverifiedSupport,
)
from skills.review.publishing import approve, reject
from tests.factories import make_content, make_experience, make_member, make_owner, make_proposal, make_skill


@pytest.fixture
def reviewer(owner) -> User:
    return make_member(owner.organization, username="rita")


def test_approving_a_create_publishes_version_0_1_0(owner, reviewer):
    content = make_content(name="pay-an-order")
    proposal = make_proposal(owner, content)

    skill = approve(revision=proposal, decided_by=reviewer, reason="Right.")

    assert Content.of(Skill.objects.get()) == content
    assert (skill.version, skill.status) == ("0.1.0", "active")
    assert (skill.organization, skill.end_user) == (owner.organization, owner.end_user)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.version, proposal.skill) == ("published", "0.1.0", skill)
    assert skill.current_revision == proposal
    decision = ReviewDecision.objects.get()
    assert (decision.revision, decision.decision, decision.organization) == (
        proposal,
        "approve",
        owner.organization,
    )
    assert (decision.decided_by, decision.decided_by_name) == (reviewer, "rita")
    assert (decision.decided_by_kind, decision.reason) == ("human", "Right.")
    assert proposal.decided_at is not None


def test_approving_an_edit_raises_the_patch(owner):
    skill = make_skill(owner, version="0.1.9")
    proposal = make_proposal(owner, make_content(name="pay-better"), skill)

    approved = approve(revision=proposal)

    assert (approved.pk, approved.version, approved.name) == (skill.pk, "0.1.10", "pay-better")
    assert approved.current_revision == proposal
    assert Skill.objects.count() == 1


def test_what_is_approved_is_found_by_search_at_once(owner):
    skill = approve(revision=make_proposal(owner, make_content(name="zebra-crossing")))
    assert SkillPosting.objects.filter(term="zebra").exists()

    approve(revision=make_proposal(owner, make_content(name="lion-crossing"), skill))

    assert not SkillPosting.objects.filter(term="zebra").exists()
    assert SkillPosting.objects.filter(term="lion").exists()


def test_before_approval_nothing_is_found(owner):
    make_proposal(owner, make_content(name="zebra-crossing"))

    assert not SkillPosting.objects.exists()


def test_the_demonstration_signs_as_what_it_is(owner):
    approve(revision=make_proposal(owner), kind="demo", reason="Approved by the demonstration.")

    decision = ReviewDecision.objects.get()
    assert (decision.decided_by, decision.decided_by_name, decision.decided_by_kind) == (None, "", "demo")


def test_rejecting_needs_a_reason_and_keeps_the_experiences_consumed(owner, reviewer):
    proposal = make_proposal(owner)
    experience = make_experience(owner, status="consumed")
    proposal.experiences.add(experience)

    for nothing in ("", " \n", "\u200b\u2060", "\u2800"):
        with pytest.raises(ReasonRequired, match="Say why: a rejection needs a reason"):
            reject(revision=proposal, reason=nothing)
    rejected = reject(revision=proposal, decided_by=reviewer, reason="Too vague.")

    assert (rejected.state, rejected.skill, rejected.version) == ("rejected", None, "")
    assert rejected.decided_at is not None
    experience.refresh_from_db()
    assert experience.status == "consumed"
    decision = ReviewDecision.objects.get()
    assert (decision.decision, decision.reason, decision.decided_by_name) == ("reject", "Too vague.", "rita")
    assert not Skill.objects.exists()


def test_the_same_decision_again_changes_nothing(owner):
    wanted, unwanted = make_proposal(owner), make_proposal(owner)
    skill = approve(revision=wanted)
    reject(revision=unwanted, reason="No.")

    assert approve(revision=wanted) == skill
    assert reject(revision=unwanted, reason="No, really.").state == "rejected"
    assert ReviewDecision.objects.count() == 2
    skill.refresh_from_db()
    assert skill.version == "0.1.0"


def test_the_opposite_decision_comes_too_late(owner):
    wanted, unwanted = make_proposal(owner), make_proposal(owner)
    approve(revision=wanted)
    reject(revision=unwanted, reason="No.")

    with pytest.raises(AlreadyDecided, match=f"{wanted.pk} was published on "):
        reject(revision=wanted, reason="No.")
    with pytest.raises(AlreadyDecided, match=f"{unwanted.pk} was rejected on "):
        approve(revision=unwanted)

    assert ReviewDecision.objects.count() == 2


def test_what_was_published_without_a_decision_is_decided_too(owner):
    skill = make_skill(owner)

    with pytest.raises(AlreadyDecided, match=f"{skill.current_revision.pk} was published"):
        reject(revision=skill.current_revision, reason="No.")


def test_a_superseded_proposal_points_to_its_successor(owner):
    old = make_proposal(owner, state="superseded")
    new = make_proposal(owner, supersedes=old)

    with pytest.raises(AlreadyDecided, match=f"{old.pk} was superseded by {new.pk}; decide the latest"):
        approve(revision=old)
    with pytest.raises(AlreadyDecided, match="decide the latest"):
        reject(revision=old, reason="No.")

    assert not ReviewDecision.objects.exists()


def test_a_skill_that_moved_on_is_not_overwritten(owner):
    skill = make_skill(owner)
    proposal = make_proposal(owner, make_content(name=skill.name), skill)
    newer = make_proposal(owner, state="published", skill=skill, version="0.1.1")
    Skill.objects.filter(pk=skill.pk).update(current_revision=newer, version="0.1.1")

    with pytest.raises(BaseConflict) as conflict:
        approve(revision=proposal)

    assert str(conflict.value) == (
        f"{proposal.pk} was made against version 0.1.0 of “{skill.name}”, which is at 0.1.1 by now."
    )
    proposal.refresh_from_db()
    skill.refresh_from_db()
    assert (proposal.state, skill.version, skill.current_revision) == ("proposed", "0.1.1", newer)
    assert not ReviewDecision.objects.exists()


def test_no_revision_rests_on_unverified_experiences_alone(owner):
    proposal = make_proposal(owner)
    proposal.experiences.add(
        make_experience(owner, verified=False, credibility=0.3), make_experience(owner, quarantined=True)
    )

    with pytest.raises(UnverifiedSupport, match="rests on unverified or quarantined experiences alone"):
        approve(revision=proposal)

    assert not Skill.objects.exists()
    proposal.experiences.add(make_experience(owner))
    assert approve(revision=proposal).version == "0.1.0"


def test_content_is_checked_again_before_it_is_published(owner):
    proposal = make_proposal(owner, make_content(triggers=["t" * 513], description=" "))

    with pytest.raises(InvalidContent) as refused:
        approve(revision=proposal)

    assert refused.value.errors == {
        "description": ["Must not be blank."],
        "triggers": ["Trigger 1 has 513 characters; at most 512."],
    }
    assert not Skill.objects.exists()


def test_a_name_that_was_taken_meanwhile_is_a_clear_error(owner):
    proposal = make_proposal(owner, make_content(name="pay"))
    make_skill(owner, make_content(name="pay"))
    make_skill(make_owner(owner.organization), make_content(name="pay"))

    with pytest.raises(InvalidContent, match="Another skill is called “pay” already"):
        approve(revision=proposal)

    proposal.refresh_from_db()
    assert (proposal.state, Skill.objects.for_owner(owner).count()) == ("proposed", 1)


def test_reviewers_lock_the_skill_before_its_revision(owner):
    skill = make_skill(owner)
    proposal = make_proposal(owner, make_content(name=skill.name), skill)

    with CaptureQueriesContext(connection) as captured:
        reject(revision=proposal, reason="No.")

    locks = [query["sql"] for query in captured if "FOR NO KEY UPDATE" in query["sql"]]
    assert [sql.split(" FROM ")[1].split()[0] for sql in locks] == [
        '"skills_skill"',
        '"skills_skillrevision"',
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("edits", [False, True])
def test_of_many_reviewers_at_once_one_decides(edits):
    owner = make_owner()
    skill = make_skill(owner) if edits else None
    proposal = make_proposal(owner, make_content(name="pay"), skill)
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def decide(number: int) -> None:
        try:
            mine = SkillRevision.objects.get(pk=proposal.pk)
            start.wait(timeout=10)
            if number % 2:
                approve(revision=mine)
                outcomes.append("published")
            else:
                reject(revision=mine, reason=f"No, says {number}.")
                outcomes.append("rejected")
        except AlreadyDecided:
            outcomes.append("late")
        finally:
            connection.close()

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    proposal.refresh_from_db()
    assert sorted(outcomes) == sorted([proposal.state] * 4 + ["late"] * 4)
    assert ReviewDecision.objects.count() == 1
    published = proposal.state == "published"
    assert list(Skill.objects.values_list("version", flat=True)) == (
        ["0.1.1" if published else "0.1.0"] if edits else ["0.1.0"] * published
    )
