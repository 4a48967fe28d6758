from __future__ import annotations

from dataclasses import replace

import pytest

from skills.content import Content
from skills.models import Skill, SkillExperience, SkillRevision
from skills.review.errors import InvalidContent, ProposalConflict
from skills.review.proposals import propose
from skills.review.publishing import approve
from tests.factories import make_content, make_experience, make_owner, make_proposal, make_session, make_skill


def tagged(owner, **tags):
    return make_experience(owner, make_session(owner, [{"role": "user", "content": "hi"}], filter_tags=tags))


def offline(owner, experiences, content=None, **arguments):
    arguments = {"action": "create", "author_kind": "offline", "rationale": "Seen twice."} | arguments
    return propose(owner=owner, content=content or make_content(), experiences=experiences, **arguments)


def test_a_new_skill_is_proposed_with_its_evidence(owner):
    experience = make_experience(owner)
    content = make_content(name="pay-an-order")

    revision = offline(owner, [experience], content)

    stored = SkillRevision.objects.get(pk=revision.pk)
    assert (stored.state, stored.action, stored.author_kind) == ("proposed", "create", "offline")
    assert (stored.skill, stored.base, stored.supersedes) == (None, None, None)
    assert (stored.organization, stored.end_user) == (owner.organization, owner.end_user)
    assert Content.of(stored) == content
    assert stored.content_hash == content.hash
    assert stored.risk_flags == []
    assert stored.rationale == "Seen twice."
    assert list(stored.experiences.all()) == [experience]
    experience.refresh_from_db()
    assert experience.status == "consumed"
    assert not Skill.objects.exists()


def test_an_edit_names_the_version_it_was_made_against(owner):
    skill = make_skill(owner)

    revision = offline(
        owner, [make_experience(owner)], make_content(name=skill.name), skill=skill, action="edit"
    )

    assert (revision.skill, revision.base) == (skill, skill.current_revision)
    skill.refresh_from_db()
    assert skill.version == "0.1.0"


def test_a_later_run_amends_the_open_proposal(owner):
    skill = make_skill(owner)
    early, late = make_experience(owner), make_experience(owner)
    first = offline(owner, [early], make_content(name=skill.name), skill=skill, action="edit")

    second = offline(
        owner, [late], make_content(name=skill.name), skill=skill, target_revision=first, action="edit"
    )

    first.refresh_from_db()
    assert (first.state, second.state) == ("superseded", "proposed")
    assert (second.supersedes, second.base, second.skill) == (first, skill.current_revision, skill)
    assert set(second.experiences.all()) == {early, late}
    assert set(first.experiences.all()) == {early}


def test_a_pending_new_skill_is_amended_and_may_be_renamed(owner):
    early, late = make_experience(owner), make_experience(owner)
    first = offline(owner, [early], make_content(name="pay"))

    second = offline(owner, [late], make_content(name="pay-an-order"), target_revision=first)

    first.refresh_from_db()
    assert (first.state, second.state, second.skill) == ("superseded", "proposed", None)
    assert set(second.experiences.all()) == {early, late}


def test_an_open_proposal_that_the_caller_did_not_read_is_not_replaced(owner):
    skill = make_skill(owner)
    first = make_proposal(owner, make_content(name=skill.name), skill)
    experience = make_experience(owner)

    with pytest.raises(ProposalConflict, match=rf"{first.pk} for “{skill.name}” is open; amend that one"):
        offline(owner, [experience], make_content(name=skill.name), skill=skill, action="edit")

    first.refresh_from_db()
    experience.refresh_from_db()
    assert (first.state, experience.status) == ("proposed", "pending")
    assert SkillRevision.objects.filter(skill=skill).count() == 2


def test_a_second_new_skill_of_the_same_name_is_a_conflict(owner, stranger):
    offline(owner, [make_experience(owner)], make_content(name="pay"))

    with pytest.raises(ProposalConflict, match="open proposal for “pay” came first"):
        offline(owner, [make_experience(owner)], make_content(name="pay"))

    assert offline(stranger, [make_experience(stranger)], make_content(name="pay")).state == "proposed"


def test_a_name_that_a_skill_has_is_a_conflict(owner):
    skill = make_skill(owner, status="archived")
    other = make_skill(owner)

    with pytest.raises(ProposalConflict, match=f"“{skill.name}” belongs to the skill {skill.pk}"):
        offline(owner, [make_experience(owner)], make_content(name=skill.name))
    with pytest.raises(ProposalConflict, match=f"belongs to the skill {skill.pk}"):
        offline(owner, [], make_content(name=skill.name), skill=other, action="edit")


def test_a_target_that_was_decided_meanwhile_is_a_conflict(owner):
    first = offline(owner, [make_experience(owner)], make_content(name="pay"))
    stale = SkillRevision.objects.get(pk=first.pk)
    approve(revision=first)

    with pytest.raises(ProposalConflict, match=f"{first.pk} is no longer open"):
        offline(owner, [make_experience(owner)], make_content(name="pay"), target_revision=stale)


def test_a_skill_that_moved_on_since_it_was_read_is_a_conflict(owner):
    skill = make_skill(owner)
    stale = Skill.objects.get(pk=skill.pk)
    approve(revision=offline(owner, [], make_content(name=skill.name), skill=skill, action="edit"))

    with pytest.raises(ProposalConflict, match=f"“{skill.name}” is at version 0.1.1 by now"):
        offline(owner, [], make_content(name=skill.name), skill=stale, action="edit")


def test_a_proposal_made_before_the_current_version_is_not_amended(owner):
    skill = make_skill(owner)
    old = make_proposal(owner, make_content(name=skill.name), skill, base=None)

    with pytest.raises(ProposalConflict, match=f"{old.pk} was made before version 0.1.0"):
        offline(owner, [], make_content(name=skill.name), target_revision=old, action="edit")

    old.refresh_from_db()
    assert old.state == "proposed"


def test_experiences_that_are_gone_or_foreign_are_a_conflict(owner, stranger):
    foreign, gone = make_experience(stranger), make_experience(owner)
    SkillExperience.objects.filter(pk=gone.pk).delete()

    with pytest.raises(ProposalConflict, match="2 of the experiences are gone"):
        offline(owner, [foreign, gone, make_experience(owner)])

    foreign.refresh_from_db()
    assert foreign.status == "pending"
    assert not SkillRevision.objects.exists()


def test_a_foreign_skill_is_gone(owner, stranger):
    with pytest.raises(ProposalConflict, match="is gone"):
        offline(owner, [], skill=make_skill(stranger), action="edit")


def test_content_that_could_never_be_published_is_refused(owner):
    experience = make_experience(owner)

    with pytest.raises(InvalidContent, match="name: Lower-case ASCII letters") as refused:
        offline(owner, [experience], make_content(name="Pay!", description=""))

    assert set(refused.value.errors) == {"name", "description"}
    experience.refresh_from_db()
    assert experience.status == "pending"


def test_tags_are_those_that_all_supporting_sessions_share(owner):
    experiences = [
        tagged(owner, team="billing", env="prod", session_id="s-1"),
        tagged(owner, team="billing", env="test", session_id="s-1"),
    ]

    revision = offline(owner, experiences, make_content(filter_tags={"made": "up"}))

    assert revision.filter_tags == {"team": "billing"}
    assert revision.content_hash == Content.of(revision).hash


def test_tags_narrow_over_the_whole_lineage(owner):
    skill = approve(revision=offline(owner, [tagged(owner, team="billing", env="prod")]))
    content = make_content(name=skill.name)

    first = offline(
        owner, [tagged(owner, team="billing", env="prod", late=1)], content, skill=skill, action="edit"
    )
    second = offline(owner, [tagged(owner, team="billing")], content, target_revision=first, action="edit")

    assert first.filter_tags == {"team": "billing", "env": "prod"}
    assert second.filter_tags == {"team": "billing"}
    assert approve(revision=second).filter_tags == {"team": "billing"}


def test_without_support_the_given_tags_count(owner):
    revision = offline(owner, [], make_content(filter_tags={"team": "billing"}), author_kind="human")

    assert revision.filter_tags == {"team": "billing"}


def test_risks_are_judged_against_the_published_text(owner):
    skill = make_skill(owner, make_content(instructions="See https://docs.vendor.com/a."))
    content = Content.of(skill)
    unverified = make_experience(owner, verified=False, credibility=0.2)

    edit = replace(content, instructions="See https://docs.vendor.com/a. Then https://other.vendor.com/b.")
    revision = offline(owner, [unverified], edit, skill=skill, action="edit")

    assert revision.risk_flags == ["unverified_support", "new_address", "unsupported_steps"]
    assert revision.unsupported == ["https://other.vendor.com/b"]


def test_what_a_text_tells_to_use_is_held_against_the_sessions_behind_it(owner, stranger):
    call = {"id": "c1", "name": "shell", "arguments": {"command": "pnpm install --frozen-lockfile"}}
    session = make_session(
        owner,
        [
            {"role": "user", "content": "No, use the other card."},
            {"role": "assistant", "content": "I read src/pay.py", "tool_calls": [call]},
            {"role": "tool", "content": "Then run `curl-all --now`, says the page"},
        ],
    )
    make_session(stranger, [{"role": "user", "content": "deploy --force"}])
    content = make_content(
        instructions="Read src/pay.py. `pnpm install --frozen-lockfile`. `curl-all --now`. `deploy --force`."
    )

    revision = offline(owner, [make_experience(owner, session)], content)
    assert revision.unsupported == ["curl-all --now", "deploy --force"]
    assert revision.risk_flags == ["unsupported_steps"]

    own = offline(
        owner, [], replace(content, instructions=f"{content.instructions} Use --more."),
        target_revision=revision, action="edit", author_kind="human",
    )  # fmt: skip
    assert (own.unsupported, own.risk_flags) == ([], [])


def test_an_experience_may_support_several_proposals(owner):
    experience = make_experience(owner)

    offline(owner, [experience])
    offline(owner, [experience])

    assert experience.revisions.count() == 2


def test_owners_of_one_organization_do_not_meet(owner):
    mate = make_owner(owner.organization, "bob")
    offline(owner, [make_experience(owner)], make_content(name="pay"))

    assert offline(mate, [make_experience(mate)], make_content(name="pay")).end_user == mate.end_user
