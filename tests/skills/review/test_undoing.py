"""A decision taken back: the skill says again what it said, and everything stays in the history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mirix.tenants.owners import Owner
from skills.models import ReviewDecision, Skill, SkillRevision
from skills.review.errors import BaseConflict, MayNotDecide, NothingToDo, ProposalConflict
from skills.review.history import archive
from skills.review.merges import propose_merge
from skills.review.publishing import approve, reject
from skills.review.undoing import undo_approval, undo_rejection
from skills.search.service import search
from tests.factories import make_content, make_experience, make_member, make_owner, make_proposal

pytestmark = pytest.mark.django_db

TEXT = make_content(name="pay", instructions="1. Ask.\n2. Charge it.\n")


@pytest.fixture
def owner() -> Owner:
    return make_owner()


@pytest.fixture
def rita(owner):
    return make_member(owner.organization, username="rita")


def published(owner: Owner, content=TEXT, skill: Skill | None = None, **fields) -> SkillRevision:
    proposal = make_proposal(owner, content, skill, **fields)
    proposal.experiences.add(make_experience(owner))
    approve(revision=proposal)
    return SkillRevision.objects.get(pk=proposal.pk)


def names_found(owner: Owner) -> list[str]:
    result = search(organization=owner.organization, owner=owner, query="pay an order", method="bm25")
    return sorted(hit.skill.name for hit in result.hits)


def test_a_new_skill_goes_out_of_use(owner, rita):
    created = published(owner)
    assert names_found(owner) == ["pay"]
    skill = undo_approval(revision=created, decided_by=rita)
    assert (skill.status, skill.version, skill.instructions) == ("archived", "0.1.1", TEXT.instructions)
    assert names_found(owner) == []
    last = ReviewDecision.objects.order_by("-created_at", "-id").first()
    assert last is not None
    assert (last.decided_by, last.reason) == (rita, "Taken back right after it was approved.")


def test_an_edit_is_rolled_back_to_what_was_before(owner, rita):
    created = published(owner)
    edit = published(owner, replace(TEXT, instructions="1. Charge it.\n"), created.skill)
    skill = undo_approval(revision=edit, decided_by=rita)
    assert (skill.status, skill.version, skill.instructions) == ("active", "0.1.2", TEXT.instructions)
    assert SkillRevision.objects.get(pk=edit.pk).state == "published"


def test_sent_again_it_changes_nothing_more(owner, rita):
    created = published(owner)
    edit = published(owner, replace(TEXT, instructions="1. Charge it.\n"), created.skill)
    for revision in (edit, edit):
        assert undo_approval(revision=revision, decided_by=rita).version == "0.1.2"


def test_what_was_published_anew_since_is_left_alone(owner, rita):
    created = published(owner)
    published(owner, replace(TEXT, instructions="1. Charge it.\n"), created.skill)
    with pytest.raises(BaseConflict, match=r"is at version 0\.1\.1 by now"):
        undo_approval(revision=created, decided_by=rita)
    assert Skill.objects.get().version == "0.1.1"


def test_a_restored_skill_goes_out_of_use_again(owner, rita):
    skill = published(owner).skill
    archive(skill=skill, decided_by=rita, reason="Old.")
    back = published(owner, TEXT, Skill.objects.get(), action="restore")
    assert Skill.objects.get().status == "active"
    assert undo_approval(revision=back, decided_by=rita).status == "archived"


def test_a_skill_that_was_merged_comes_back(owner, rita):
    into = published(owner).skill
    source = published(owner, make_content(name="refund", instructions="1. Pay it back.\n")).skill
    merge = propose_merge(source=source, target=into, author=rita)
    approve(revision=merge, decided_by=rita)
    assert names_found(owner) == ["pay"]
    merge.refresh_from_db()
    skill = undo_approval(revision=merge, decided_by=rita)
    assert skill.instructions == TEXT.instructions
    assert names_found(owner) == ["pay", "refund"]


def test_what_was_never_approved_is_refused(owner, rita):
    with pytest.raises(NothingToDo, match="never approved"):
        undo_approval(revision=make_proposal(owner), decided_by=rita)


def test_only_who_decides_takes_back(owner):
    created = published(owner)
    operator = make_member(owner.organization, "operator")
    with pytest.raises(MayNotDecide):
        undo_approval(revision=created, decided_by=operator)
    assert Skill.objects.get().status == "active"


def rejected(owner: Owner, content=TEXT, skill: Skill | None = None, **fields) -> SkillRevision:
    proposal = make_proposal(owner, content, skill, **fields)
    proposal.experiences.add(make_experience(owner, status="consumed"))
    return reject(revision=proposal, reason="By mistake.")


def test_what_was_rejected_waits_again_with_its_evidence(owner, rita):
    gone = rejected(owner, rationale="Two sessions say so.")
    again = undo_rejection(revision=gone, decided_by=rita)
    assert (again.state, again.name, again.content_hash) == ("proposed", "pay", gone.content_hash)
    assert (again.action, again.author_kind, again.rationale) == ("create", "offline", "Two sessions say so.")
    assert list(again.experiences.all()) == list(gone.experiences.all())
    assert SkillRevision.objects.get(pk=gone.pk).state == "rejected"
    assert ReviewDecision.objects.get().decision == "reject"
    assert approve(revision=again, decided_by=rita).version == "0.1.0"


def test_a_rejection_is_taken_back_once(owner, rita):
    gone = rejected(owner)
    undo_rejection(revision=gone, decided_by=rita)
    with pytest.raises(ProposalConflict, match="came first"):
        undo_rejection(revision=gone, decided_by=rita)
    assert SkillRevision.objects.filter(state="proposed").count() == 1


def test_a_change_that_was_rejected_is_for_the_version_that_it_was_made_for(owner, rita):
    skill = published(owner).skill
    gone = rejected(owner, replace(TEXT, instructions="1. Charge it.\n"), skill)
    again = undo_rejection(revision=gone, decided_by=rita)
    assert (again.skill, again.base) == (skill, gone.base)
    reject(revision=again, reason="No.")
    published(owner, replace(TEXT, description="Altogether new."), Skill.objects.get())
    with pytest.raises(BaseConflict, match=r"is at 0\.1\.1 by now"):
        undo_rejection(revision=SkillRevision.objects.get(pk=gone.pk), decided_by=rita)


def test_only_who_decides_takes_a_rejection_back_and_only_a_rejection(owner, rita):
    gone = rejected(owner)
    with pytest.raises(MayNotDecide):
        undo_rejection(revision=gone, decided_by=make_member(owner.organization, "operator"))
    with pytest.raises(NothingToDo, match="not rejected"):
        undo_rejection(revision=make_proposal(owner), decided_by=rita)
    assert SkillRevision.objects.filter(name="pay", state="proposed").count() == 0
