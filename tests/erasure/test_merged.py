"""A skill is erased that went into another one: that one lives on with what was its own, and says why."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.test import Client as Browser

from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.models import Client
from mirix.tenants.owners import Owner
from skills.erasure.single import erase_skill
from skills.models import RevisionState, Skill, SkillExperience, SkillRevision
from skills.review.history import archive, rollback
from skills.review.merges import merge_proposal, propose_merge
from skills.review.proposals import propose
from skills.review.publishing import approve, reject
from skills.review.undoing import undo_approval
from skills.search.index import index_skill
from tests.erasure.canary import found
from tests.erasure.test_client import lesson, names
from tests.factories import (
    make_client,
    make_content,
    make_experience,
    make_member,
    make_owner,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
ACTOR = Actor(kind="command", name="root")
SECRET = "zanzibar"
OWN = "1. Ask which card to use."
WHY = "A skill that was merged into it was erased, and what it had of that one went as well."


def published(owner: Owner, instructions: str, *support: SkillExperience, **fields) -> Skill:
    """A skill that agents find."""
    skill = make_skill(owner, make_content(instructions=instructions, **fields))
    assert skill.current_revision
    skill.current_revision.experiences.set(support)
    index_skill(skill)
    return skill


@pytest.fixture
def source(owner) -> Skill:
    """What is to be erased."""
    return published(
        owner,
        f"1. Greet {SECRET}.",
        name=f"greet-{SECRET}",
        description=f"Use for {SECRET}.",
        triggers=[f"greet {SECRET}"],
        examples=[{"said": SECRET}],
    )


@pytest.fixture
def target(owner) -> Skill:
    return published(owner, OWN, name="pay-an-order", triggers=["pay an order"])


def fresh(skill: Skill) -> Skill:
    return Skill.objects.select_related("current_revision", "organization", "end_user").get(pk=skill.pk)


def merged(source: Skill, target: Skill, reason: str = "") -> SkillRevision:
    """Merge and publish it."""
    revision = propose_merge(source=fresh(source), target=fresh(target), reason=reason)
    approve(revision=revision, decided_by=make_member(source.organization), reason=reason)
    revision.refresh_from_db()
    return revision


def edited(skill: Skill, old: str, new: str, *support: SkillExperience) -> SkillRevision:
    """Change the skill's instructions of today, and publish it."""
    skill = fresh(skill)
    content = make_content(name=skill.name, triggers=skill.triggers, examples=skill.examples)
    content.__dict__["instructions"] = skill.instructions.replace(old, new)
    revision = make_proposal(
        Owner(organization=skill.organization, end_user=skill.end_user), content, skill, author_kind="human"
    )
    revision.experiences.set(support)
    approve(revision=revision)
    return revision


def erase(skill: Skill):
    return erase_skill(skill=fresh(skill), actor=ACTOR)


def chain(skill: Skill) -> list[tuple[str, str]]:
    """The versions of a skill, the latest first, each with its action, by way of what each was made of."""
    told, row = [], fresh(skill).current_revision
    while row is not None:
        told.append((row.version, str(row.action)))
        row = row.base
    return told


def test_the_other_one_says_what_was_its_own_and_goes_back_to_review(owner, source, target):
    merged(source, target, reason=f"Both greet {SECRET}.")
    assert names(owner, SECRET) == [target.name]

    erase(source)

    assert found(SECRET) == {}
    left = fresh(target)
    assert Skill.objects.get() == left
    assert (left.instructions, left.triggers, left.examples) == (OWN, ["pay an order"], [])
    assert (left.status, left.version) == ("quarantined", "0.1.2")
    assert chain(target) == [("0.1.2", "quarantine"), ("0.1.0", "create")]
    assert left.current_revision.decisions.get().reason == WHY
    proposal = SkillRevision.objects.get(state=RevisionState.PROPOSED)
    assert (proposal.skill, proposal.action, proposal.author_kind) == (left, "restore", "offline")
    assert (
        proposal.rationale
        == f"{WHY} no session speaks for it; until somebody has decided, no search finds it."
    )
    assert names(owner, "card") == []

    approve(revision=proposal)

    assert names(owner, "card") == [target.name]


def test_whoever_reviews_it_is_told_why(owner, source, target):
    merged(source, target)
    erase(source)
    browser = Browser()
    browser.force_login(make_member(owner.organization))
    proposal = SkillRevision.objects.get(state=RevisionState.PROPOSED)

    pages = [
        browser.get(f"/admin/skills/skillrevision/{proposal.pk}/change/"),
        browser.get(f"/admin/skills/skill/{target.pk}/change/"),
    ]

    assert [WHY in page.content.decode() for page in pages] == [True, True]


def test_what_others_changed_since_stays(owner, source, target):
    merged(source, target)
    mine = make_experience(owner, status="consumed")
    line = f"2. Greet {SECRET}."
    edited(target, line, f"{line}\n3. Charge nothing twice.", mine)
    assert SECRET in fresh(target).instructions

    erase(source)

    assert found(SECRET) == {}
    left = fresh(target)
    assert left.instructions == f"{OWN}\n3. Charge nothing twice."
    assert list(left.current_revision.experiences.all()) == [mine]
    mine.refresh_from_db()
    assert mine.status == "consumed"


def test_a_lesson_whose_change_had_words_of_it_waits_again(owner, source, target):
    merged(source, target)
    mine = make_experience(owner, status="consumed")
    edited(target, f"Greet {SECRET}.", f"Greet {SECRET} twice.", mine)

    erase(source)

    assert found(SECRET) == {}
    assert fresh(target).instructions == OWN
    mine.refresh_from_db()
    assert mine.status == "pending"


def test_the_lessons_behind_the_erased_one_stay_used_up_and_do_not_speak_for_the_other(owner, source, target):
    theirs, both = (make_experience(owner, status="consumed") for _ in range(2))
    fresh(source).current_revision.experiences.set([theirs, both])
    fresh(target).current_revision.experiences.set([both])
    merged(source, target)

    erase(source)

    assert list(fresh(target).current_revision.experiences.all()) == [both]
    assert set(SkillExperience.objects.values_list("status", flat=True)) == {"consumed"}
    assert "1 session speaks for it" in SkillRevision.objects.get(state="proposed").rationale


def test_a_transcript_that_has_what_search_served_of_it_vouches_for_none_of_its_words(owner, source, target):
    turns = [
        {"role": "user", "content": "No, use the other card."},
        {"role": "tool", "content": source.instructions},
    ]
    mine = make_experience(owner, make_session(owner, turns), status="consumed")
    fresh(target).current_revision.experiences.set([mine])
    merged(source, target)

    erase(source)

    assert found(SECRET) == {"conversations_conversationmessage": 1}
    assert fresh(target).instructions == OWN


def test_it_goes_out_of_all_that_the_other_was_merged_into_in_turn(owner, source, target):
    last = published(owner, "1. Say goodbye.", name="say-goodbye")
    merged(source, target)
    merged(target, last)
    assert SECRET in fresh(last).instructions

    erase(source)

    assert found(SECRET) == {}
    assert fresh(last).instructions == "1. Say goodbye."
    assert (fresh(target).status, fresh(target).instructions) == ("archived", OWN)


def test_what_was_merged_into_the_erased_one_stays_and_does_not_name_it(owner, source):
    first = published(owner, "1. Say goodbye.", name="say-goodbye")
    merged(first, source)
    assert found(f"Merged into “{source.name}”")

    erase(source)

    assert found(SECRET) == {}
    left = fresh(first)
    assert (left.status, left.instructions) == ("archived", "1. Say goodbye.")
    assert left.current_revision.decisions.get().reason == "What stood here named a skill that was erased."


def test_one_that_was_rolled_back_since_stays_in_use(owner, source, target):
    before = target.current_revision
    merged(source, target)
    rollback(skill=fresh(target), to=before, reason="No.")

    erase(source)

    assert found(SECRET) == {}
    assert (fresh(target).status, fresh(target).instructions) == ("active", OWN)
    assert chain(target) == [("0.1.2", "rollback"), ("0.1.0", "create")]
    assert not SkillRevision.objects.filter(state=RevisionState.PROPOSED).exists()
    assert names(owner, "card") == [target.name]


def test_after_the_merge_was_taken_back(owner, source, target):
    undo_approval(revision=merged(source, target))

    erase(source)

    assert found(SECRET) == {}
    assert (fresh(target).status, fresh(target).instructions) == ("active", OWN)


def test_one_that_was_archived_since_stays_so(owner, source, target):
    merged(source, target)
    archive(skill=fresh(target), reason="Old.")

    erase(source)

    assert found(SECRET) == {}
    assert (fresh(target).status, fresh(target).instructions) == ("archived", OWN)
    assert not SkillRevision.objects.filter(state=RevisionState.PROPOSED).exists()


def test_a_merge_that_was_turned_down_goes(owner, source, target):
    reject(revision=propose_merge(source=source, target=target), reason=f"Never {SECRET}.")

    erase(source)

    assert found(SECRET) == {}
    assert list(fresh(target).revisions.all()) == [target.current_revision]
    assert fresh(target).status == "active"


def test_a_change_that_waits_for_the_other_is_closed(owner, source, target):
    merged(source, target)
    mine = make_experience(owner, status="consumed")
    skill = fresh(target)
    waiting = make_proposal(owner, make_content(name=skill.name, instructions="1. Ask nobody."), skill)
    waiting.experiences.set([mine])

    erase(source)

    waiting.refresh_from_db()
    assert waiting.state == "superseded"
    assert SkillRevision.objects.get(state="proposed").action == "restore"
    mine.refresh_from_db()
    assert mine.status == "pending"


def test_a_merge_that_said_nothing_new_stays_without_a_word_about_it(owner, target):
    source = published(owner, OWN, name=f"greet-{SECRET}", description="Use when an order must be paid.")
    revision = merged(source, target, reason=f"As {SECRET} said.")
    SkillRevision.objects.filter(pk=revision.pk).update(source={"from": SECRET})

    erase(source)

    assert found(SECRET) == {}
    left = fresh(target)
    assert (left.status, left.current_revision_id) == ("active", revision.pk)


def test_what_it_was_made_of_before_it_was_a_skill_goes(owner):
    content = make_content(name=f"greet-{SECRET}", instructions=f"1. Greet {SECRET}.")
    first = propose(
        owner=owner, content=content, action="create", author_kind="human", experiences=[], rationale=SECRET
    )
    second = propose(
        owner=owner,
        content=make_content(name=content.name, instructions=f"1. Greet {SECRET} twice."),
        target_revision=first,
        action="create",
        author_kind="human",
        experiences=[],
        rationale="",
    )
    skill = approve(revision=second)

    erase(skill)

    assert found(SECRET) == {}
    assert not SkillRevision.objects.exists()


def test_a_proposal_that_was_put_into_it_goes(owner, source):
    other = make_proposal(owner, make_content(name="say-goodbye", instructions="1. Say goodbye."))
    put_in = make_proposal(owner, make_content(name=f"wave-{SECRET}", instructions=f"1. Wave at {SECRET}."))
    revision = merge_proposal(proposal=put_in, into=source, decided_by=make_member(owner.organization))
    approve(revision=revision)

    erase(source)

    assert found(SECRET) == {}
    assert list(SkillRevision.objects.all()) == [other]


def test_a_name_that_another_skill_has_by_now_does_not_stop_it(owner, source, target):
    merged(source, target)
    skill = fresh(target)
    content = make_content(name=f"{SECRET}-again", instructions=skill.instructions)
    approve(revision=make_proposal(owner, content, skill))
    published(owner, "1. Say goodbye.", name="pay-an-order")

    erase(source)

    assert found(SECRET) == {}
    assert (fresh(target).name, fresh(target).status) == ("pay-an-order-2", "quarantined")


def test_a_text_that_breaks_a_rule_of_today_does_not_stop_it(owner, source):
    old = published(owner, "1. Ask.", name="pay-an-order", description=" ")
    skill = fresh(old)
    revision = make_proposal(
        owner, make_content(name=old.name, instructions=f"1. Ask {SECRET}."), skill,
        merged_from=source.current_revision,
    )  # fmt: skip
    approve(revision=revision)

    erase(source)

    assert found(SECRET) == {}
    assert (fresh(old).status, fresh(old).description) == ("quarantined", " ")
    assert not SkillRevision.objects.filter(state=RevisionState.PROPOSED).exists()


def test_the_log_of_the_admin_forgets_what_the_other_was_called(owner, source, target):
    merged(source, target)
    skill = fresh(target)
    approve(revision=make_proposal(owner, make_content(name=f"pay-{SECRET}"), skill))
    staff = make_member(owner.organization)
    for row in (fresh(target), *SkillRevision.objects.filter(skill=target)):
        LogEntry.objects.create(
            user=staff,
            content_type=ContentType.objects.get_for_model(row),
            object_id=row.pk,
            object_repr=str(row),
            action_flag=CHANGE,
        )

    erase(source)

    assert found(SECRET) == {}


def test_others_are_not_touched(owner, source, target):
    other_user = make_owner(owner.organization)
    theirs = published(other_user, f"1. Greet {SECRET}.", name=f"greet-{SECRET}")
    shared = make_experience(owner, status="consumed")
    same = published(owner, f"1. Greet {SECRET}.", shared, name="of-the-same-lesson")
    fresh(source).current_revision.experiences.set([shared])
    merged(source, target)

    erase(source)

    for skill in (theirs, same):
        assert (fresh(skill).status, fresh(skill).instructions) == ("active", f"1. Greet {SECRET}.")


class TestOfAClient:
    @pytest.fixture
    def going(self, owner) -> Client:
        return make_client(owner.organization, "going")

    def test_words_that_a_model_found_for_its_lessons_go_with_the_skill_they_stood_in(self, owner, going):
        """None of the client's own words is in them."""
        staying = make_client(owner.organization, "staying")
        source = published(
            owner, f"1. Greet {SECRET}.", lesson(going, owner, "Wave."), name=f"greet-{SECRET}"
        )
        theirs = lesson(staying, owner, "Ask which card to use.")
        target = published(owner, OWN, theirs, name="pay-an-order")
        merged(source, target)

        erasure.erase_client(client=going, actor=ACTOR)

        assert found(SECRET) == {}
        assert (fresh(target).instructions, fresh(target).status) == (OWN, "quarantined")
        assert list(fresh(target).current_revision.experiences.all()) == [theirs]
