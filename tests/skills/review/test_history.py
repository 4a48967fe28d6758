"""Rolling back, archiving, restoring, quarantining and releasing."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.db import connection

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import ReviewDecision, Skill, SkillDocument, SkillRevision
from skills.review.errors import (
    AlreadyDecided,
    BaseConflict,
    InvalidContent,
    NothingToDo,
    ReasonRequired,
    UnverifiedSupport,
)
from skills.review.history import MOVES, archive, move, moves_from, quarantine, release, restore, rollback
from skills.review.publishing import approve, reject
from skills.search.service import search
from tests.factories import make_content, make_experience, make_member, make_proposal, make_skill

FIRST = "1. Ask which card to use."
SECOND = "1. Ask which card to use.\n2. Charge it."


@pytest.fixture
def reviewer(owner) -> User:
    return make_member(owner.organization, username="rita")


@pytest.fixture
def skill(owner) -> Skill:
    """Version 0.1.1 of a skill that said something else at 0.1.0."""
    first = approve(revision=make_proposal(owner, make_content(name="pay", instructions=FIRST)))
    edit = replace(Content.of(first), instructions=SECOND)
    return approve(revision=make_proposal(owner, edit, first))


def version(skill: Skill, number: str) -> SkillRevision:
    return skill.revisions.get(version=number)


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def found(owner: Owner, query: str = "pay card") -> list[str]:
    methods = ("hybrid", "bm25", "string_match")
    by_method = [
        [
            hit.skill.pk
            for hit in search(
                organization=owner.organization,
                owner=owner,
                query="card" if method == "string_match" else query,
                method=method,
                field="",
            ).hits
        ]
        for method in methods
    ]
    assert by_method[0] == by_method[1] == by_method[2]
    return by_method[0]


def test_a_roll_back_is_a_new_version_with_the_old_content(owner, skill, reviewer):
    original = version(skill, "0.1.0")
    experience = make_experience(owner)
    original.experiences.add(experience)

    revision = rollback(skill=skill, to=original, decided_by=reviewer, reason="Charged twice.")

    after = now(skill)
    assert (after.version, after.instructions, after.status) == ("0.1.2", FIRST, "active")
    assert after.current_revision == revision
    assert Content.of(after) == Content.of(original)
    assert (revision.action, revision.state, revision.version) == ("rollback", "published", "0.1.2")
    assert (revision.base, revision.author_kind, revision.author) == (
        version(skill, "0.1.1"),
        "human",
        reviewer,
    )
    assert revision.content_hash == original.content_hash
    assert list(revision.experiences.all()) == [experience]
    decision = ReviewDecision.objects.get(revision=revision)
    assert (decision.decision, decision.decided_by_name, decision.reason) == (
        "approve",
        "rita",
        "Charged twice.",
    )


def test_the_past_stays_as_it_was(skill):
    before = list(skill.revisions.order_by("pk").values())

    rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")

    known = [row["id"] for row in before]
    assert list(skill.revisions.filter(pk__in=known).order_by("pk").values()) == before
    assert sorted(skill.revisions.values_list("version", flat=True)) == ["0.1.0", "0.1.1", "0.1.2"]


def test_a_roll_back_of_a_roll_back_is_the_original_content(skill):
    original = Content.of(skill)
    rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")
    rollback(skill=now(skill), to=version(skill, "0.1.1"), reason="Yes.")

    after = now(skill)
    assert (after.version, Content.of(after)) == ("0.1.3", original)
    assert version(skill, "0.1.3").content_hash == version(skill, "0.1.1").content_hash


def test_search_finds_the_old_words_at_once(owner, skill):
    edited = replace(Content.of(skill), instructions="1. Use the zebra for the card.")
    approve(revision=make_proposal(owner, edited, skill))
    assert search(organization=owner.organization, owner=owner, query="zebra").hits

    rollback(skill=now(skill), to=version(skill, "0.1.1"), reason="No.")

    assert not search(organization=owner.organization, owner=owner, query="zebra").hits
    assert found(owner) == [skill.pk]


def test_what_cannot_be_rolled_back_to(owner, skill):
    first = version(skill, "0.1.0")
    waiting = make_proposal(owner, make_content(name="pay"), skill)
    other = make_skill(owner).current_revision
    first.experiences.add(make_experience(owner, verified=False, credibility=0.3))
    before = list(SkillRevision.objects.order_by("pk").values())

    with pytest.raises(NothingToDo, match=r"“pay” 0\.1\.1 says what 0\.1\.1 said"):
        rollback(skill=skill, to=version(skill, "0.1.1"), reason="No.")
    with pytest.raises(NothingToDo, match=rf"{waiting.pk} never was a version of “pay”"):
        rollback(skill=skill, to=waiting, reason="No.")
    with pytest.raises(NothingToDo, match=r"never was a version"):
        rollback(skill=skill, to=other, reason="No.")
    with pytest.raises(ReasonRequired, match=r"a roll back needs a reason"):
        rollback(skill=skill, to=first, reason=" \u200b")
    with pytest.raises(UnverifiedSupport, match=r"“pay” 0\.1\.0 rests on unverified"):
        rollback(skill=skill, to=first, reason="No.")

    assert list(SkillRevision.objects.order_by("pk").values()) == before
    assert now(skill).version == "0.1.1"


def test_a_name_that_was_taken_meanwhile_is_a_clear_error(owner, skill):
    renamed = replace(Content.of(skill), name="pay-by-card")
    approve(revision=make_proposal(owner, renamed, skill))
    make_skill(owner, make_content(name="pay"))

    with pytest.raises(InvalidContent, match=r"Another skill is called “pay” already"):
        rollback(skill=now(skill), to=version(skill, "0.1.0"), reason="No.")

    assert (now(skill).name, now(skill).version) == ("pay-by-card", "0.1.2")


def test_a_skill_that_was_published_anew_since_it_was_read_is_left_alone(owner, skill):
    seen = now(skill)
    approve(revision=make_proposal(owner, make_content(name="pay"), skill))

    with pytest.raises(BaseConflict, match=r"“pay” is at version 0\.1\.2 by now"):
        rollback(skill=seen, to=version(skill, "0.1.0"), reason="No.")
    with pytest.raises(BaseConflict):
        archive(skill=seen, reason="No.")

    assert now(skill).version == "0.1.2"


@pytest.mark.parametrize("act", ["archive", "quarantine", "rollback"])
def test_the_same_act_sent_twice_is_done_once(skill, act):
    seen, first = now(skill), version(skill, "0.1.0")

    def do(reason: str) -> SkillRevision:
        if act == "rollback":
            return rollback(skill=seen, to=first, reason=reason)
        return move(skill=seen, act=act, reason=reason)

    done = do("No.")
    before = list(SkillRevision.objects.order_by("pk").values())

    assert do("No, really.") == done
    assert list(SkillRevision.objects.order_by("pk").values()) == before
    assert ReviewDecision.objects.get(revision=done).reason == "No."
    with pytest.raises(BaseConflict):
        move(skill=seen, act="archive" if act != "archive" else "quarantine", reason="No.")


def test_the_same_act_on_what_came_after_it_is_another_one(skill):
    seen = now(skill)
    archive(skill=seen, reason="No.")
    restore(skill=now(skill), reason="Yes.")

    with pytest.raises(BaseConflict):
        archive(skill=seen, reason="No.")
    assert now(skill).status == "active"


def test_an_archived_skill_is_found_by_nobody_until_it_is_restored(owner, skill, reviewer):
    assert found(owner) == [skill.pk]

    archived = archive(skill=skill, decided_by=reviewer, reason="Out of date.")
    assert found(owner) == []
    assert not SkillDocument.objects.exists()
    assert (now(skill).status, now(skill).version) == ("archived", "0.1.2")
    assert (archived.action, archived.version) == ("archive", "0.1.2")

    restored = restore(skill=now(skill), decided_by=reviewer, reason="It came back.")
    assert found(owner) == [skill.pk]
    assert (now(skill).status, now(skill).version) == ("active", "0.1.3")
    assert (restored.action, Content.of(now(skill))) == ("restore", Content.of(skill))
    assert list(
        ReviewDecision.objects.filter(revision__in=[archived, restored])
        .order_by("created_at")
        .values_list("reason", "decided_by_name")
    ) == [("Out of date.", "rita"), ("It came back.", "rita")]


def test_a_quarantined_skill_is_found_by_nobody_until_it_is_released(owner, skill):
    quarantine(skill=skill, reason="Looks wrong.")
    assert (found(owner), now(skill).status) == ([], "quarantined")

    release(skill=now(skill), reason="It is right.")
    assert (found(owner), now(skill).status) == ([skill.pk], "active")


def test_rolling_back_does_not_bring_an_archived_skill_back(owner, skill):
    archive(skill=skill, reason="No.")

    rollback(skill=now(skill), to=version(skill, "0.1.0"), reason="For the record.")

    assert (now(skill).status, now(skill).instructions, found(owner)) == ("archived", FIRST, [])


@pytest.mark.parametrize("status", ["active", "archived", "quarantined"])
@pytest.mark.parametrize("act", MOVES)
def test_only_what_a_status_offers_can_be_done(owner, status, act):
    skill = make_skill(owner, status=status)

    if act in moves_from(status):
        move(skill=skill, act=act, reason="So.")
        assert now(skill).status == MOVES[act].after
    else:
        with pytest.raises(NothingToDo):
            move(skill=skill, act=act, reason="So.")
        assert (now(skill).status, now(skill).version) == (status, "0.1.0")
    with pytest.raises(ReasonRequired):
        move(skill=now(skill), act=act, reason="\n")


def test_what_stands_on_nothing_verified_may_go_but_not_come_back(owner, skill):
    current = skill.current_revision
    current.experiences.add(make_experience(owner, quarantined=True))

    quarantine(skill=skill, reason="Its evidence was set aside.")

    with pytest.raises(UnverifiedSupport):
        release(skill=now(skill), reason="Still fine.")
    assert now(skill).status == "quarantined"


def test_a_proposal_outlives_what_leaves_the_text_as_it_was(owner, skill):
    proposal = make_proposal(owner, replace(Content.of(skill), instructions="1. Do not."), skill)
    archive(skill=skill, reason="No.")
    restore(skill=now(skill), reason="Yes.")

    assert approve(revision=proposal).version == "0.1.4"


def test_a_proposal_made_before_a_roll_back_overwrites_nothing(owner, skill):
    proposal = make_proposal(owner, replace(Content.of(skill), instructions="1. Do not."), skill)
    rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")

    with pytest.raises(BaseConflict, match=r"was made against version 0\.1\.1 of “pay”, which is at 0\.1\.2"):
        approve(revision=proposal)

    assert now(skill).instructions == FIRST


def test_where_a_text_came_from_stays_with_it(owner, skill):
    SkillRevision.objects.filter(pk=version(skill, "0.1.0").pk).update(source={"file": "pay.md"})

    back = rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")
    gone = archive(skill=now(skill), reason="No.")

    assert (back.source, gone.source) == ({"file": "pay.md"}, {"file": "pay.md"})


def test_a_proposal_that_lapsed_gives_its_experiences_back(owner, skill):
    proposal = make_proposal(owner, replace(Content.of(skill), instructions="1. Do not."), skill)
    own, shared = make_experience(owner, status="consumed"), make_experience(owner, status="consumed")
    proposal.experiences.set([own, shared])
    skill.current_revision.experiences.add(shared)
    rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")

    lapsed = reject(revision=proposal, reason="It moved on.")

    assert lapsed.state == "superseded"
    assert ReviewDecision.objects.get(revision=proposal).decision == "reject"
    for experience, status in ((own, "pending"), (shared, "consumed")):
        experience.refresh_from_db()
        assert experience.status == status
    assert reject(revision=proposal, reason="Again.") == lapsed
    assert ReviewDecision.objects.filter(revision=proposal).count() == 1
    own.refresh_from_db()
    assert own.status == "pending"
    with pytest.raises(AlreadyDecided, match=f"{proposal.pk} lapsed"):
        approve(revision=proposal)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", range(4))
def test_of_a_roll_back_and_an_approval_at_once_one_wins_and_the_other_is_told(owner, turn):
    first = approve(revision=make_proposal(owner, make_content(name="pay", instructions=FIRST)))
    text = replace(Content.of(first), instructions=SECOND)
    skill = approve(revision=make_proposal(owner, text, first))
    proposal = make_proposal(owner, replace(text, instructions="1. Third."), skill)
    start, outcomes = threading.Barrier(2), {}

    def act(name: str) -> None:
        try:
            start.wait(timeout=10)
            if name == "rollback":
                rollback(skill=skill, to=version(skill, "0.1.0"), reason="No.")
            else:
                approve(revision=proposal)
            outcomes[name] = "done"
        except BaseConflict:
            outcomes[name] = "told"
        finally:
            connection.close()

    names = ("rollback", "approve") if turn % 2 else ("approve", "rollback")
    threads = [threading.Thread(target=act, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(outcomes.values()) == ["done", "told"]
    after = now(skill)
    assert after.version == "0.1.2"
    assert after.instructions == (FIRST if outcomes["rollback"] == "done" else "1. Third.")
    assert sorted(skill.revisions.filter(state="published").values_list("version", flat=True)) == [
        "0.1.0",
        "0.1.1",
        "0.1.2",
    ]
