"""One skill is erased, with its past and what was made of it."""

from __future__ import annotations

import pytest

from mirix.tenants.audit import Actor
from mirix.tenants.erasure import NothingThere
from skills.erasure.single import erase_skill
from skills.models import Skill, SkillExperience, SkillPosting, SkillRevision
from skills.review.merges import propose_merge
from skills.search.index import index_skill
from tests.erasure.canary import found
from tests.factories import (
    make_content,
    make_experience,
    make_owner,
    make_proposal,
    make_proposer_call,
    make_run,
    make_skill,
)

pytestmark = pytest.mark.django_db
SECRET = "zanzibar"


@pytest.fixture
def skill(owner) -> Skill:
    skill = make_skill(owner, make_content(name=f"greet-{SECRET}", instructions=f"1. Greet {SECRET}."))
    index_skill(skill)
    make_proposal(owner, make_content(name=skill.name, instructions=f"2. {SECRET}."), skill)
    run = make_run(owner, notes=[{"reason": SECRET, "name": SECRET}])
    make_proposer_call(run, raw_reply=SECRET)
    return skill


def erase(skill: Skill):
    return erase_skill(skill=skill, actor=Actor(kind="command", name="root"))


def test_no_word_of_it_is_left(owner, skill):
    other = make_skill(owner)
    index_skill(other)
    lesson = make_experience(owner, status="consumed")
    skill.current_revision.experiences.set([lesson])

    receipt = erase(skill)

    assert found(SECRET) == {}
    assert list(Skill.objects.all()) == [other]
    assert set(SkillPosting.objects.values_list("document__skill", flat=True)) == {other.pk}
    assert SkillExperience.objects.get().status == "consumed"
    assert (receipt.kind, receipt.subject_id, receipt.counts["skills.skillrevision"]) == (
        "skill",
        skill.pk,
        2,
    )


def test_a_merge_that_waits_goes_and_the_other_skill_stays(owner, skill):
    other = make_skill(owner)
    propose_merge(source=skill, target=other)

    erase(skill)

    assert found(SECRET) == {}
    assert list(SkillRevision.objects.all()) == [other.current_revision]


def test_twice(skill):
    erase(skill)
    with pytest.raises(NothingThere):
        erase(skill)


def test_over_the_api(owner, skill, admin_api, api, stranger_api):
    path = f"/memory/procedural/{skill.pk}"
    make_owner(owner.organization, "bob")
    assert stranger_api.delete(path).status_code == 404
    assert api.delete(path).status_code == 403
    assert admin_api.delete(f"{path}?user_id=bob").status_code == 404
    assert Skill.objects.count() == 1

    answer = admin_api.delete(f"{path}?user_id=alice")

    assert answer.status_code == 200
    assert answer.json()["receipt"]["kind"] == "skill"
    assert not Skill.objects.exists()
    assert admin_api.delete(path).status_code == 404
