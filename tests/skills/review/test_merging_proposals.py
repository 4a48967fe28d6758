"""A pending new skill that goes into one that there is: a change of that, with the same evidence."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from mirix.tenants.owners import Owner
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.errors import MayNotDecide, NothingToDo, ProposalConflict
from skills.review.merges import merge_proposal
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_skill,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Owner:
    return make_owner()


@pytest.fixture
def rita(owner):
    return make_member(owner.organization, username="rita")


@pytest.fixture
def skill(owner) -> Skill:
    return make_skill(owner, make_content(name="pay", instructions="1. Ask.\n", triggers=["pay"]))


@pytest.fixture
def proposal(owner) -> SkillRevision:
    made = make_proposal(owner, make_content(name="charge", instructions="1. Wait.\n", triggers=["charge"]))
    made.experiences.add(make_experience(owner))
    return made


def nothing_changed(proposal: SkillRevision) -> bool:
    proposal.refresh_from_db()
    waiting = SkillRevision.objects.filter(state="proposed", merged_from=None)
    return proposal.state == "proposed" and proposal in waiting and not ReviewDecision.objects.exists()


def test_the_skill_gets_a_change_that_waits_and_the_proposal_is_rejected_for_it(owner, rita, skill, proposal):
    made = merge_proposal(proposal=proposal, into=skill, decided_by=rita, reason="One thing.")
    assert (made.skill, made.state, made.author, made.name) == (skill, "proposed", rita, "pay")
    assert "Ask." in made.instructions
    assert "Wait." in made.instructions
    assert made.triggers == ["pay", "charge"]
    assert list(made.experiences.all()) == list(proposal.experiences.all())
    assert {experience.status for experience in made.experiences.all()} == {"consumed"}
    proposal.refresh_from_db()
    assert proposal.state == "rejected"
    decision = ReviewDecision.objects.get()
    assert (decision.revision, decision.reason) == (proposal, "It goes into “pay”. One thing.")
    skill.refresh_from_db()
    assert skill.version == "0.1.0"


def test_asked_for_again_it_returns_what_waits(owner, rita, skill, proposal):
    first = merge_proposal(proposal=proposal, into=skill, decided_by=rita, reason="One thing.")
    again = merge_proposal(proposal=proposal, into=skill, decided_by=rita, reason="One thing.")
    assert again == first
    assert ReviewDecision.objects.count() == 1
    assert SkillRevision.objects.filter(state="proposed").get() == first

    other = make_proposal(owner, make_content(name="debit", instructions="1. Wait.\n", triggers=["charge"]))
    with pytest.raises(ProposalConflict, match=f"{first.pk} for “pay” is open"):
        merge_proposal(proposal=other, into=skill, decided_by=rita)
    other.refresh_from_db()
    assert other.state == "proposed"


@pytest.mark.django_db(transaction=True)
def test_two_who_ask_at_once_get_the_same(owner, rita, skill, proposal):
    start, made = threading.Barrier(2), []

    def merge() -> None:
        try:
            start.wait(timeout=10)
            made.append(merge_proposal(proposal=proposal, into=skill, decided_by=rita))
        finally:
            connection.close()

    threads = [threading.Thread(target=merge) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 2
    assert made[0] == made[1]
    assert ReviewDecision.objects.count() == 1


def test_what_the_skill_says_already_is_to_be_rejected(owner, rita, skill):
    proposal = make_proposal(owner, make_content(name="charge", instructions="1. Ask.\n", triggers=["pay"]))
    with pytest.raises(NothingToDo, match="says all of that already"):
        merge_proposal(proposal=proposal, into=skill, decided_by=rita)
    assert nothing_changed(proposal)


def test_a_skill_of_another_end_user_is_refused(owner, rita, proposal):
    foreign = make_skill(make_owner(owner.organization))
    with pytest.raises(NothingToDo, match="different end users"):
        merge_proposal(proposal=proposal, into=foreign, decided_by=rita)
    assert nothing_changed(proposal)


def test_a_change_of_a_skill_is_refused(owner, rita, skill):
    edit = make_proposal(owner, make_content(name="pay"), skill)
    with pytest.raises(NothingToDo, match="merge the skill itself"):
        merge_proposal(proposal=edit, into=make_skill(owner), decided_by=rita)
    assert nothing_changed(edit)


def test_where_a_change_waits_already_that_is_decided_first(owner, rita, skill, proposal):
    make_proposal(owner, make_content(name="pay", instructions="1. Run."), skill)
    with pytest.raises(ProposalConflict, match="is open"):
        merge_proposal(proposal=proposal, into=skill, decided_by=rita)
    assert nothing_changed(proposal)


def test_a_skill_that_is_out_of_use_is_refused(owner, rita, proposal):
    with pytest.raises(NothingToDo, match="out of use"):
        merge_proposal(proposal=proposal, into=make_skill(owner, status="archived"), decided_by=rita)
    assert nothing_changed(proposal)


def test_only_who_decides_merges(owner, skill, proposal):
    operator = make_member(owner.organization, "operator")
    with pytest.raises(MayNotDecide):
        merge_proposal(proposal=proposal, into=skill, decided_by=operator)
    assert nothing_changed(proposal)
