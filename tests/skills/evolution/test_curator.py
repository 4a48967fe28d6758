"""The curator on real rows: what is written, what is refused, and what stays pending."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import count

import pytest
from django.db import connection

from conversations.models import Session
from mirix.tenants.models import OrganizationSettings
from skills.content import Content
from skills.evolution import curator, writing
from skills.evolution.curator import evolve
from skills.evolution.library import Library
from skills.evolution.types import ExperienceView, Operation
from skills.models import (
    ExperienceStatus,
    RevisionState,
    RunTrigger,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.editing import edit_proposal, edit_skill
from skills.review.errors import AgainstPolicy
from skills.review.history import archive, rollback
from skills.review.publishing import approve, lapse, reject
from skills.runs import LostRun, claim
from skills.search.service import search
from tests.factories import (
    make_content,
    make_experience,
    make_member,
    make_proposal,
    make_session,
    make_skill,
)

pytestmark = pytest.mark.django_db
_number = count(11)


@pytest.fixture
def held(owner):
    return claim(owner=owner, trigger=RunTrigger.COMMAND)


def refused_call(owner, error="balance is not enough", tool="pay_order", session=None, **details):
    """An experience as the offline distiller writes it: a call that other arguments got through.

    Each is about another card, as each session is another one.
    """
    session = session or make_session(
        owner, [{"role": "tool", "content": f"Error: {error}", "tool_name": tool, "is_error": True}]
    )
    facts = {
        "pattern": "changed_arguments",
        "tool": tool,
        "error": error,
        "error_pattern": error,
        "changes": [
            {"argument": "method", "before": f"gift_card_{next(_number)}", "after": "credit_card_22"}
        ],
        "telling": ["method"],
        "request": "I want to pay my order with another card",
    }
    return make_experience(
        owner,
        session,
        experience_type="worth_learning",
        title=f"When `{tool}` says “{error}”, use a `credit_card_…` as `method`",
        topic=f"tool:{tool}",
        signal_type="tool_error",
        quote=f"Error: {error}",
        details=facts | details,
    )


class Scripted:
    """A proposer that answers what it is told to."""

    name = "llm"

    def __init__(self, *operations: Operation) -> None:
        self.operations = list(operations)
        self.handed_out: list[ExperienceView] = []

    def is_ready(self, experiences, candidates):
        return True

    def propose(self, experiences, candidates):
        self.handed_out += experiences
        operations, self.operations = self.operations, []
        ids = tuple(experience.id for experience in experiences)
        return [replace(item, experience_ids=item.experience_ids or ids) for item in operations]


def create(ids=(), **fields) -> Operation:
    return Operation(
        action="create", content=make_content(**fields), experience_ids=tuple(ids), rationale="because"
    )


def pending(owner) -> set[str]:
    rows = SkillExperience.objects.for_owner(owner).filter(status=ExperienceStatus.PENDING)
    return set(rows.values_list("pk", flat=True))


def test_lessons_about_one_tool_become_one_proposal(owner, held):
    first, second = refused_call(owner), refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.for_owner(owner).get()
    assert report.proposed == [revision.pk]
    assert (report.published, report.refused, report.budget) == ([], [], 2)
    assert sorted(report.consumed) == sorted([first.pk, second.pk])
    assert revision.state == RevisionState.PROPOSED
    assert revision.name == "pay-order"
    assert revision.author_kind == "offline"
    assert revision.run_id == held.run_id
    assert set(revision.experiences.all()) == {first, second}
    assert not pending(owner)
    assert not Skill.objects.for_owner(owner).exists()


def test_the_same_again_proposes_nothing(owner, held):
    refused_call(owner)
    evolve(owner=owner, claim=held)

    assert evolve(owner=owner, claim=held).proposed == []
    again = refused_call(owner)
    report = evolve(owner=owner, claim=held)

    assert (report.proposed, report.refused) == ([], [])
    assert report.consumed == [again.pk]
    revision = SkillRevision.objects.for_owner(owner).get()
    assert again in revision.experiences.all()


def test_a_new_lesson_amends_the_open_proposal(owner, held):
    refused_call(owner)
    (first,) = evolve(owner=owner, claim=held).proposed
    later = refused_call(owner, error="card has expired")

    (second,) = evolve(owner=owner, claim=held).proposed

    amended = SkillRevision.objects.get(pk=second)
    assert amended.supersedes_id == first
    assert amended.experiences.count() == 2
    assert later in amended.experiences.all()
    assert "“balance is not enough”" in amended.instructions
    assert "“card has expired”" in amended.instructions
    assert amended.rationale == (
        "2 lessons from 2 sessions support this proposal in all. "
        "Added now: 1 lesson from 1 session about pay order."
    )
    assert SkillRevision.objects.get(pk=first).state == RevisionState.SUPERSEDED


def test_a_new_lesson_edits_the_published_skill(owner, held):
    refused_call(owner)
    (first,) = evolve(owner=owner, claim=held).proposed
    skill = approve(revision=SkillRevision.objects.get(pk=first))
    refused_call(owner, error="card has expired")

    (second,) = evolve(owner=owner, claim=held).proposed

    edit = SkillRevision.objects.get(pk=second)
    assert (edit.action, edit.skill, edit.base_id) == ("edit", skill, first)


def test_owners_do_not_see_each_other(owner, stranger, held):
    refused_call(stranger)

    report = evolve(owner=owner, claim=held)

    assert (report.proposed, report.consumed, report.budget) == ([], [], 0)
    assert not SkillRevision.objects.exists()
    assert len(pending(stranger)) == 1


def test_quarantined_and_used_experiences_are_left_alone(owner, held):
    aside = make_experience(owner, quarantined=True)
    make_experience(owner, status=ExperienceStatus.CONSUMED)

    report = evolve(owner=owner, claim=held)

    assert report.consumed == []
    aside.refresh_from_db()
    assert aside.status == ExperienceStatus.PENDING


def test_what_is_quarantined_counts_for_nothing(owner, held):
    """Neither in the budget, nor as one of the sessions that a topic waits for, nor as support of a text."""
    skill = make_skill(owner, make_content(name="pay-order", description="Use when `pay_order` fails."))
    for quarantined in (True, False):
        skill.current_revision.experiences.add(
            make_experience(owner, quarantined=quarantined, status="consumed", topic="tool:pay_order")
        )
    trusted = refused_call(owner)
    aside = [refused_call(owner, error).pk for error in ("no such card", "no such order")]
    SkillExperience.objects.filter(pk__in=aside).update(quarantined=True)
    proposer = Scripted()

    report = evolve(owner=owner, claim=held, proposer=proposer)

    assert [view.id for view in proposer.handed_out] == [trusted.pk]
    assert report.budget == 2  # round_half_up(1 + 0.5): that of one experience; of three it would be 3
    [candidate] = Library(owner).candidates("tool:pay_order", proposer.handed_out)
    assert [view.title for view in Library(owner).with_support(candidate).support] == [
        skill.current_revision.experiences.get(quarantined=False).title
    ]


def test_what_is_released_is_used_by_the_next_run(owner, held):
    experience = refused_call(owner)
    SkillExperience.objects.update(quarantined=True)
    assert evolve(owner=owner, claim=held, proposer=Scripted(create())).consumed == []

    SkillExperience.objects.update(quarantined=False)

    assert evolve(owner=owner, claim=held, proposer=Scripted(create())).consumed == [experience.pk]


def test_fifty_at_most_the_weightiest_first(owner, held):
    session = make_session(owner, [{"role": "user", "content": "use the other card"}])
    rows = [make_experience(owner, session, importance=1 - n / 100, topic="tool:pay") for n in range(52)]
    proposer = Scripted()

    evolve(owner=owner, claim=held, proposer=proposer)

    assert [view.id for view in proposer.handed_out] == [row.pk for row in rows[:50]]


def test_what_was_refused_does_not_hold_up_the_rest(owner, monkeypatch):
    monkeypatch.setattr(curator, "MAX_EXPERIENCES", 1)
    stuck = make_experience(owner, topic="tool:stuck", importance=0.9, verified=False, credibility=0.3)
    other = make_experience(owner, topic="tool:other", importance=0.1)

    def run():
        held = claim(owner=owner, trigger=RunTrigger.COMMAND)
        report = evolve(owner=owner, claim=held)
        held.end("finished", notes=[asdict(refusal) for refusal in report.refused])
        return report

    assert [refusal.experience_ids for refusal in run().refused] == [(stuck.pk,)]
    assert run().consumed == [other.pk]
    assert pending(owner) == {stuck.pk}


def test_what_is_cited_is_consumed_and_nothing_else(owner, held):
    session = make_session(owner, [{"role": "user", "content": "use the other card"}])
    cited, other = make_experience(owner, session), make_experience(owner, session)

    report = evolve(owner=owner, claim=held, proposer=Scripted(create([cited.pk])))

    assert report.consumed == [cited.pk]
    assert pending(owner) == {other.pk}


def test_budget_is_charged_for_what_was_written(owner, held, settings):
    settings.MIRIX_SKILL_EDIT_BUDGET_MAX = 2
    row = make_experience(owner)
    second, third, fourth = (make_experience(owner, row.session, topic="tool:pay") for _ in range(3))
    make_experience(owner, row.session, topic="tool:pay")
    proposer = Scripted(
        create([row.pk], name="Not a slug"),
        create([row.pk], name="first", instructions="one a b c d e f"),
        create([second.pk], name="second", instructions="two g h i j k l"),
        create([third.pk], name="third", instructions="three m n o p q r"),
        create([fourth.pk], name="fourth", instructions="four s t u v w x"),
    )

    report = evolve(owner=owner, claim=held, proposer=proposer)

    assert report.budget == 2
    assert [SkillRevision.objects.get(pk=pk).name for pk in report.proposed] == ["first", "second"]
    assert report.refused[0].name == "Not a slug"
    assert [refusal.reason for refusal in report.refused[1:]] == [
        "The budget of 2 is used up; 2 operations wait."
    ]
    assert {third.pk, fourth.pk} <= pending(owner)


def test_invented_evidence_is_refused(owner, held, stranger):
    make_experience(owner)
    foreign = make_experience(stranger)

    report = evolve(owner=owner, claim=held, proposer=Scripted(create(["sexp-invented", foreign.pk])))

    assert [refusal.reason for refusal in report.refused] == [
        f"It cites what this run did not hand out: sexp-invented, {foreign.pk}."
    ]
    assert not SkillRevision.objects.exists()
    assert pending(stranger) == {foreign.pk}


class Meddling(Scripted):
    """A person acts while the proposer thinks."""

    def __init__(self, act, *operations):
        super().__init__(*operations)
        self.act = act

    def propose(self, experiences, candidates):
        self.act()
        return super().propose(experiences, candidates)


def test_an_experience_set_aside_meanwhile_is_not_used(owner, held):
    row = make_experience(owner)
    proposer = Meddling(lambda: SkillExperience.objects.update(quarantined=True), create())

    report = evolve(owner=owner, claim=held, proposer=proposer)

    assert [refusal.reason for refusal in report.refused] == [
        "Some of its experiences were used or set aside meanwhile."
    ]
    assert pending(owner) == {row.pk}


def test_a_proposal_that_was_decided_meanwhile_is_left_alone(owner, held):
    waiting = make_proposal(owner, make_content(name="pay-order"))
    waiting.experiences.add(make_experience(owner, status=ExperienceStatus.CONSUMED))
    row = refused_call(owner)
    view = curator.Library(owner).get(waiting.pk)
    edit = Operation(
        action="edit",
        content=replace(view.content, instructions="1. Ask which card to use.\n2. Say what it costs."),
        experience_ids=(),
        rationale="",
        target=view,
    )

    report = evolve(owner=owner, claim=held, proposer=Meddling(lambda: approve(revision=waiting), edit))

    assert report.proposed == []
    assert [refusal.name for refusal in report.refused] == ["pay-order"]
    assert pending(owner) == {row.pk}
    assert Skill.objects.get().version == "0.1.0"


def test_unverified_evidence_alone_carries_nothing(owner, held):
    row = make_experience(owner, verified=False, credibility=0.3)

    report = evolve(owner=owner, claim=held)

    assert [refusal.reason for refusal in report.refused] == ["None of the cited experiences is verified."]
    assert pending(owner) == {row.pk}


def test_a_create_near_a_skill_becomes_an_edit_of_it(owner, held):
    skill = make_skill(owner, make_content(name="pay-orders", instructions="1. Ask which card to use."))
    make_experience(owner)
    proposer = Scripted(create(name="pay-order", instructions="1. Read the amount back.\n2. Wait for a yes."))

    report = evolve(owner=owner, claim=held, proposer=proposer)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, revision.skill, revision.name) == ("edit", skill, "pay-orders")
    assert revision.instructions == "1. Ask which card to use.\n2. Read the amount back.\n3. Wait for a yes."


@pytest.mark.parametrize("status", ["archived", "quarantined"])
def test_a_skill_out_of_use_is_edited_too_rather_than_doubled(owner, held, status):
    skill = make_skill(owner, make_content(name="pay-order"), status=status)
    refused_call(owner)

    report = evolve(owner=owner, claim=held)

    assert SkillRevision.objects.get(pk=report.proposed[0]).skill == skill
    skill.refresh_from_db()
    assert skill.status == status


def archived_skill(owner, held):
    """A skill of one lesson that a person took out of use."""
    refused_call(owner)
    [revision] = evolve(owner=owner, claim=held).proposed
    skill = approve(revision=SkillRevision.objects.get(pk=revision))
    archive(skill=skill, reason="Nobody needed it.")
    return Skill.objects.get(pk=skill.pk)


def test_a_new_lesson_asks_for_an_archived_skill_back(owner, held):
    skill = archived_skill(owner, held)
    refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, revision.skill, revision.state) == ("restore", skill, RevisionState.PROPOSED)
    assert revision.rationale.startswith("Asks for the skill back, which is archived. 1 lesson from 1 ")
    assert search(organization=owner.organization, owner=owner, query="pay order").hits == []
    restored = approve(revision=revision)
    assert (restored.status, restored.version) == ("active", "0.1.2")
    assert "“card has expired”" in restored.instructions
    [hit] = search(organization=owner.organization, owner=owner, query="pay order").hits
    assert hit.skill == skill


def test_the_same_lesson_from_another_session_asks_for_it_back_as_it_was(owner, held):
    skill = archived_skill(owner, held)
    again = refused_call(owner)

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, Content.of(revision)) == ("restore", Content.of(skill))
    assert again in revision.experiences.all()
    assert report.refused == []
    # What says so once more joins it, and does not ask again.
    third = refused_call(owner)
    assert evolve(owner=owner, claim=held).proposed == []
    assert third in revision.experiences.all()
    # More is learned meanwhile: still one proposal, and it still restores.
    refused_call(owner, error="card has expired")
    [amended] = evolve(owner=owner, claim=held).proposed
    assert SkillRevision.objects.get(pk=amended).action == "restore"
    assert SkillRevision.objects.filter(state=RevisionState.PROPOSED).count() == 1


def test_a_create_near_an_archived_skill_asks_for_it_back(owner, held):
    skill = make_skill(owner, make_content(name="pay-orders"), status="archived")
    make_experience(owner)
    twin = create(name="pay-order", instructions=skill.instructions, triggers=skill.triggers)

    report = evolve(owner=owner, claim=held, proposer=Scripted(twin))

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.action, revision.skill, revision.name) == ("restore", skill, "pay-orders")


def test_a_copy_of_what_is_behind_an_archived_skill_does_not(owner, held):
    skill = archived_skill(owner, held)
    known = skill.revisions.order_by("created_at").first().experiences.get()
    copy = refused_call(owner, changes=known.details["changes"])

    report = evolve(owner=owner, claim=held)

    assert (report.proposed, report.consumed) == ([], [copy.pk])


def test_a_skill_that_was_not_wanted_back_waits_for_two_new_sessions(owner, held):
    archived_skill(owner, held)
    refused_call(owner)
    [asked] = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=asked), reason="It stays where it is.")
    refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)
    assert report.proposed == []
    assert report.refused[0].reason.startswith(f"{asked} with much the same text was rejected")

    refused_call(owner, error="card has expired")
    [again] = evolve(owner=owner, claim=held).proposed
    assert SkillRevision.objects.get(pk=again).action == "restore"


def test_by_policy_no_skill_comes_back(owner, held, settings):
    archived_skill(owner, held)
    settings.MIRIX_REVIEW_POLICY = "automatic"
    refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)

    assert (len(report.proposed), report.published) == (1, [])
    assert Skill.objects.get().status == "archived"


def test_a_create_that_adds_nothing_to_a_skill_supports_it(owner, held):
    content = make_content(name="pay-orders")
    skill = make_skill(owner, content)
    row = make_experience(owner)
    twin = create(name="pay-order", instructions=content.instructions, triggers=content.triggers)

    report = evolve(owner=owner, claim=held, proposer=Scripted(twin))

    assert (report.proposed, report.consumed, report.refused) == ([], [row.pk], [])
    assert list(skill.current_revision.experiences.all()) == [row]


def test_a_create_near_an_open_proposal_amends_it(owner, held):
    waiting = make_proposal(owner, make_content(name="pay-orders", instructions="1. Ask for the card."))
    make_experience(owner)
    proposer = Scripted(create(name="pay-order", instructions="1. Wait for a yes."))

    report = evolve(owner=owner, claim=held, proposer=proposer)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert revision.supersedes == waiting
    assert revision.name == "pay-orders"


def test_rejected_text_waits_for_two_new_sessions(owner, held):
    first = refused_call(owner)
    (rejected,) = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=rejected), reason="We do not want this.")
    again = refused_call(owner, session=first.session)
    once = refused_call(owner)

    report = evolve(owner=owner, claim=held)

    assert report.proposed == []
    assert [refusal.reason for refusal in report.refused] == [
        f"{rejected} with much the same text was rejected, and fewer than 2 new sessions speak for it."
    ]
    assert pending(owner) == {again.pk, once.pk}

    refused_call(owner)
    assert len(evolve(owner=owner, claim=held).proposed) == 1


def test_copies_of_a_session_do_not_speak_for_what_was_rejected(owner, held):
    first = refused_call(owner)
    (rejected,) = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=rejected), reason="We do not want this.")
    for _ in range(3):
        refused_call(owner, changes=first.details["changes"])

    report = evolve(owner=owner, claim=held)

    assert report.proposed == []
    assert [refusal.name for refusal in report.refused] == ["pay-order"]


def test_nor_do_copies_of_which_something_else_was_learned(owner, held):
    first = refused_call(owner)
    (rejected,) = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=rejected), reason="We do not want this.")
    sessions = [first.session, *(refused_call(owner).session for _ in range(3))]
    Session.objects.filter(pk__in=[session.pk for session in sessions]).update(history_hash="a" * 64)

    assert evolve(owner=owner, claim=held).proposed == []

    for session in sessions:
        Session.objects.filter(pk=session.pk).update(history_hash=session.pk)
    [anew] = evolve(owner=owner, claim=held).proposed
    assert SkillRevision.objects.get(pk=anew).rationale.startswith("3 lessons from 3 sessions")


def test_a_rejected_change_is_not_proposed_again_either(owner, held):
    skill = make_skill(owner, make_content(name="pay-order"))
    refused_call(owner)
    (rejected,) = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=rejected), reason="Wrong.")
    refused_call(owner)

    report = evolve(owner=owner, claim=held)

    assert report.proposed == []
    assert report.refused[0].name == skill.name
    assert "was rejected" in report.refused[0].reason


def test_an_edit_must_not_turn_one_skill_into_another(owner, held):
    other = make_skill(owner, make_content(name="refund-order", instructions="1. Ask why.\n2. Refund it."))
    mine = make_skill(owner, make_content(name="pay-order"))
    make_experience(owner)
    view = curator.Library(owner).get(mine.pk)
    edit = Operation(
        action="edit",
        content=replace(Content.of(mine), name="refund-orders"),
        experience_ids=(),
        rationale="",
        target=view,
    )

    report = evolve(owner=owner, claim=held, proposer=Scripted(edit))

    assert [refusal.reason for refusal in report.refused] == [
        f"The edit would make it a near-duplicate of “{other.name}”."
    ]


def test_edits_in_a_chain_make_one_open_proposal(owner, held):
    skill = make_skill(owner, make_content(name="pay-order"))
    errors = [f"{word} is not accepted for this order because of the rules " * 3 for word in WORDS]
    for error in errors:
        refused_call(owner, error=error.strip())

    report = evolve(owner=owner, claim=held)

    assert len(report.proposed) == 1
    assert report.refused == []
    chain = list(SkillRevision.objects.filter(skill=skill, author_kind="offline").order_by("created_at"))
    assert len(chain) > 1
    assert [revision.state for revision in chain[:-1]] == ["superseded"] * (len(chain) - 1)
    assert chain[-1].experiences.count() == len(errors)


WORDS = ["Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel"]


def test_a_proposal_of_a_text_that_is_gone_is_made_anew_on_that_of_today(owner, held):
    """Its experiences are pending again, and the same run proposes them on what the skill says now."""
    first = make_skill(owner, make_content(name="pay-order"))
    earlier = first.current_revision
    edit_skill(
        skill=first, base=earlier, content=make_content(name="pay-order", instructions="1. Ask."),
        author=None, may_decide=True,
    )  # fmt: skip
    lesson = refused_call(owner)
    (stale,) = evolve(owner=owner, claim=held).proposed
    skill = Skill.objects.get()
    back = rollback(skill=skill, to=earlier, reason="The longer text was right.")
    later = refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)

    (anew,) = report.proposed
    revision = SkillRevision.objects.get(pk=anew)
    assert (revision.base, revision.supersedes) == (back, None)
    assert set(revision.experiences.all()) == {lesson, later}
    assert revision.instructions.startswith(back.instructions)
    assert SkillRevision.objects.get(pk=stale).state == RevisionState.SUPERSEDED
    assert [refusal.reason for refusal in report.refused] == [
        f"{stale} lapsed: its skill says something else by now. 1 experience is pending again."
    ]
    assert approve(revision=revision).instructions == revision.instructions
    assert evolve(owner=owner, claim=held).refused == []


def test_a_run_brings_what_still_fits_onto_the_text_of_today_and_goes_on_from_there(owner, held):
    """A lesson that comes meanwhile amends it; one approval publishes all of it on what the skill says."""
    text = make_content(name="pay-order", instructions="1. Ask.\n2. Pay.\n3. Send.\n")
    first = make_skill(owner, text)
    earlier = first.current_revision
    edit_skill(
        skill=first, base=earlier, content=replace(text, instructions="1. Guess.\n2. Pay.\n3. Send.\n"),
        author=None, may_decide=True,
    )  # fmt: skip
    lesson = refused_call(owner)
    (stale,) = evolve(owner=owner, claim=held).proposed
    back = rollback(skill=Skill.objects.get(), to=earlier, reason="Never guess.")
    later = refused_call(owner, error="card has expired")

    report = evolve(owner=owner, claim=held)

    (anew,) = report.proposed
    revision = SkillRevision.objects.get(pk=anew)
    moved = SkillRevision.objects.get(pk=revision.supersedes_id)
    assert (moved.supersedes_id, moved.base, moved.state) == (stale, back, RevisionState.SUPERSEDED)
    assert (revision.base, set(revision.experiences.all())) == (back, {lesson, later})
    assert [refusal.reason for refusal in report.refused] == [
        f"{stale} was brought onto what its skill says by now, as {moved.pk}."
    ]
    assert approve(revision=revision).instructions.startswith("1. Ask.\n2. Pay.\n3. Send.\n")
    assert Skill.objects.get().instructions == revision.instructions


def test_where_the_change_that_fits_may_not_be_proposed_it_lapses(owner, held):
    skill = make_skill(owner, make_content(name="pay-order", instructions="1. Ask.\n2. Pay.\n"))
    earlier = skill.current_revision
    renamed = replace(Content.of(skill), name="pay-an-order")
    edit_skill(
        skill=skill, base=earlier, author=None, may_decide=True,
        content=replace(Content.of(skill), instructions="1. Guess.\n2. Pay.\n"),
    )  # fmt: skip
    skill.refresh_from_db()
    waiting = make_proposal(owner, renamed, skill=skill)
    rollback(skill=skill, to=earlier, reason="It was right.")
    make_skill(owner, make_content(name="pay-an-order"))

    report = evolve(owner=owner, claim=held)

    waiting.refresh_from_db()
    assert waiting.state == RevisionState.SUPERSEDED
    assert [refusal.reason for refusal in report.refused] == [
        f"{waiting.pk} lapsed: its skill says something else by now. 0 experiences are pending again."
    ]


def test_a_lapsed_proposal_keeps_what_a_version_rests_on(owner, held):
    """Only what supports nothing else is given back; a proposal that still applies is left alone."""
    skill = make_skill(owner, make_content(name="pay-order"))
    earlier = skill.current_revision
    kept = make_experience(owner, status=ExperienceStatus.CONSUMED)
    earlier.experiences.add(kept)
    edit_skill(
        skill=skill, base=earlier, content=make_content(name="pay-order", instructions="1. Ask."),
        author=None, may_decide=True,
    )  # fmt: skip
    skill.refresh_from_db()
    waiting = make_proposal(owner, make_content(name="pay-order", instructions="1. Wait."), skill=skill)
    lesson = make_experience(owner, status=ExperienceStatus.CONSUMED)
    waiting.experiences.add(kept, lesson)
    assert lapse(revision=waiting) is None
    rollback(skill=Skill.objects.get(), to=earlier, reason="It was right.")

    assert lapse(revision=waiting) == 1
    assert lapse(revision=waiting) is None
    assert pending(owner) == {lesson.pk}


def test_what_a_person_wrote_waits_for_a_person(owner, held):
    skill = make_skill(owner, make_content(name="pay-order"))
    earlier = skill.current_revision
    edit_skill(
        skill=skill, base=earlier, content=make_content(name="pay-order", instructions="1. Ask."),
        author=None, may_decide=True,
    )  # fmt: skip
    mine = edit_skill(
        skill=skill, base=Skill.objects.get().current_revision, author=None, may_decide=False,
        content=make_content(name="pay-order", instructions="1. Ask twice."),
    )  # fmt: skip
    rollback(skill=Skill.objects.get(), to=earlier, reason="It was right.")

    assert evolve(owner=owner, claim=held).refused == []
    mine.refresh_from_db()
    assert mine.state == RevisionState.PROPOSED


@pytest.mark.parametrize("pending_is", ["a change", "a new skill"])
@pytest.mark.parametrize("adds", [True, False])
def test_a_run_adds_nothing_to_what_a_person_wrote(owner, held, pending_is, adds):
    OrganizationSettings.objects.update_or_create(
        organization=owner.organization, defaults={"four_eyes": True, "review_policy": "automatic"}
    )
    rita = make_member(owner.organization, username="rita")
    skill = make_skill(owner, make_content(name="pay-order")) if pending_is == "a change" else None
    text = make_content(name="pay-order", instructions="1. Ask which card to use.\n2. Ask twice.")
    waiting = make_proposal(owner, text, skill, author_kind="human", author=rita)
    row = make_experience(owner)
    wanted = f"{text.instructions}\n3. Say the amount." if adds else text.instructions
    view = Library(owner).get(skill.pk if skill else waiting.pk)
    operation = Operation(
        action="edit" if adds else "confirm",
        content=replace(view.content, instructions=wanted),
        experience_ids=(row.pk,),
        rationale="Said.",
        target=view,
    )

    report = evolve(owner=owner, claim=held, proposer=Scripted(operation))

    assert [refusal.reason for refusal in report.refused] == [
        f"{waiting.pk} waits, in a person's own words: it is decided first."
    ]
    assert (report.proposed, report.published, pending(owner)) == ([], [], {row.pk})
    with pytest.raises(AgainstPolicy, match="is your own text"):
        approve(revision=waiting, decided_by=rita)
    approve(revision=waiting, decided_by=make_member(owner.organization))
    anew = replace(operation, target=Library(owner).get(SkillRevision.objects.get(pk=waiting.pk).skill_id))
    assert evolve(owner=owner, claim=held, proposer=Scripted(anew)).refused == []
    assert pending(owner) == set()


def test_other_filter_tags_narrow_the_skill(owner, held):
    session = make_session(owner, [{"role": "tool", "content": "Error: x"}], filter_tags={"team": "a"})
    refused_call(owner, session=session)
    (first,) = evolve(owner=owner, claim=held).proposed
    assert SkillRevision.objects.get(pk=first).filter_tags == {"team": "a"}
    approve(revision=SkillRevision.objects.get(pk=first))
    refused_call(owner)

    (second,) = evolve(owner=owner, claim=held).proposed

    narrowed = SkillRevision.objects.get(pk=second)
    assert (narrowed.filter_tags, narrowed.action) == ({}, "edit")


def test_policy_automatic_publishes_what_carries_no_flag(owner, held):
    OrganizationSettings.objects.create(organization=owner.organization, review_policy="automatic")
    refused_call(owner)
    make_experience(owner, topic="tool:send", verified=False, credibility=0.3, title="Send it twice")
    make_experience(owner, topic="tool:send", title="Send it to every address at once")

    report = evolve(owner=owner, claim=held)

    published = SkillRevision.objects.get(pk=report.published[0])
    waiting = SkillRevision.objects.get(pk=report.proposed[0])
    assert (published.name, published.state) == ("pay-order", RevisionState.PUBLISHED)
    assert published.skill.version == "0.1.0"
    assert published.decisions.get().decided_by_kind == "offline"
    assert (waiting.name, waiting.state) == ("send", RevisionState.PROPOSED)
    assert waiting.risk_flags == ["unverified_support"]


def test_policy_of_the_installation(owner, held, settings):
    settings.MIRIX_REVIEW_POLICY = "automatic"
    refused_call(owner)

    report = evolve(owner=owner, claim=held)

    assert (len(report.published), report.proposed) == (1, [])


def test_a_lost_run_writes_nothing_more(owner, held):
    refused_call(owner)
    held.end("finished")

    with pytest.raises(LostRun):
        evolve(owner=owner, claim=held)

    assert not SkillRevision.objects.exists()
    assert len(pending(owner)) == 1


def test_a_crash_leaves_the_rest_pending(owner, held, monkeypatch):
    refused_call(owner)
    refused_call(owner, tool="send_order", error="address is unknown to us")
    real, calls = writing.propose, []

    def crash_at_the_second(**arguments):
        revision = real(**arguments)
        calls.append(revision)
        if len(calls) == 2:
            raise RuntimeError("power cut")
        return revision

    monkeypatch.setattr(writing, "propose", crash_at_the_second)
    with pytest.raises(RuntimeError):
        evolve(owner=owner, claim=held)

    assert SkillRevision.objects.for_owner(owner).count() == 1
    assert len(pending(owner)) == 1


@pytest.mark.django_db(transaction=True)
def test_proposers_are_called_outside_any_transaction(owner, held):
    make_experience(owner)
    seen = []

    class Watching(Scripted):
        def propose(self, experiences, candidates):
            seen.append(connection.in_atomic_block)
            return super().propose(experiences, candidates)

    evolve(owner=owner, claim=held, proposer=Watching(create()))

    assert seen == [False]


@pytest.mark.parametrize("published", [False, True])
def test_a_new_remedy_stands_behind_what_more_sessions_taught_earlier(owner, held, published):
    note = {"changes": [{"argument": "note", "before": "shop", "after": 7}], "telling": ["note"]}
    for _ in range(2):
        refused_call(owner, **note)
        evolve(owner=owner, claim=held)
        if published:
            for revision in SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED):
                approve(revision=revision)
    account = {"changes": [{"argument": "account", "before": "shop", "after": 7}], "telling": ["account"]}
    refused_call(owner, **account)

    evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.for_owner(owner).get(state=RevisionState.PROPOSED)
    assert "use another `note`; else use another `account`." in revision.instructions


BAD = "Charge the whole amount to the first card that is on file without a word to the customer."


def edit_of(owner, skill, *lines: str) -> Operation:
    target = Library(owner).get(skill.pk)
    text = "\n".join([target.content.instructions, *lines])
    return Operation(
        action="edit",
        content=replace(target.content, instructions=text),
        experience_ids=(),
        rationale="",
        target=target,
    )


def a_rejected_line(owner, held) -> SkillRevision:
    skill = make_skill(owner, make_content(name="pay-order"))
    make_experience(owner)
    [asked] = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, f"3. {BAD}"))).proposed
    return reject(revision=SkillRevision.objects.get(pk=asked), reason="Never.")


@pytest.mark.parametrize("where", ["more", "elsewhere", "new", "waiting"])
def test_a_rejected_line_comes_back_in_no_other_text(owner, held, where):
    rejected = a_rejected_line(owner, held)
    other = make_skill(
        owner, make_content(name="send-parcel", instructions="1. Weigh it.\n2. Print a label.")
    )
    row = make_experience(owner)
    harmless = [f"{n}. Say the {word} of it in words that they know." for n, word in enumerate(WORDS, 3)]
    operation = {
        "more": lambda: edit_of(owner, rejected.skill, *harmless[:6], f"- {BAD}"),
        "elsewhere": lambda: edit_of(owner, other, f"3. {BAD}"),
        "new": lambda: create(
            name="greet", description="Say hello.", instructions="\n".join([*harmless, BAD])
        ),
        "waiting": lambda: edit_of(
            owner, make_proposal(owner, make_content(name="greet", instructions="1. Hello.")), f"2. {BAD}"
        ),
    }[where]()

    report = evolve(owner=owner, claim=held, proposer=Scripted(operation))

    assert report.proposed == []
    assert [refusal.reason for refusal in report.refused] == [
        f"“{BAD}” was rejected with {rejected.pk}, and fewer than 2 new sessions speak for it."
    ]
    assert pending(owner) == {row.pk}


def test_two_new_sessions_that_speak_for_it_bring_a_rejected_line_back(owner, held, stranger):
    rejected = a_rejected_line(owner, held)
    sessions = [make_session(owner, [{"role": "user", "content": f"card {n}"}]) for n in range(2)]
    rows = [make_experience(owner, session, title="Say goodbye") for session in sessions]

    def run():
        operation = edit_of(owner, rejected.skill, f"3. {BAD}")
        return evolve(owner=owner, claim=held, proposer=Scripted(operation))

    assert run().proposed == []
    SkillExperience.objects.filter(pk__in=[row.pk for row in rows]).update(content=BAD)
    assert run().proposed == []  # both say it in the same words: it is one session, told twice
    SkillExperience.objects.filter(pk=rows[0].pk).update(quote="card 0")
    assert len(run().proposed) == 1


def test_what_one_owner_rejected_is_nothing_to_another(owner, stranger, held):
    a_rejected_line(owner, held)
    theirs = make_skill(stranger, make_content(name="pay-order"))
    make_experience(stranger)
    other = claim(owner=stranger, trigger=RunTrigger.COMMAND)

    report = evolve(owner=stranger, claim=other, proposer=Scripted(edit_of(stranger, theirs, f"3. {BAD}")))

    assert len(report.proposed) == 1


def test_lessons_that_a_person_rejected_do_not_hold_up_the_others_of_their_topic(owner, held):
    skill = make_skill(owner, make_content(name="pay-order"))
    refused_call(owner)
    [asked] = evolve(owner=owner, claim=held).proposed
    reject(revision=SkillRevision.objects.get(pk=asked), reason="Not with that card.")
    again = refused_call(owner)
    good = make_experience(
        owner, title="Use the other card", topic="tool:pay_order", signal_type="user_critique",
        details={"pattern": "user_correction", "said": "use the other card"},
    )  # fmt: skip

    report = evolve(owner=owner, claim=held)

    revision = SkillRevision.objects.get(pk=report.proposed[0])
    assert (revision.skill, report.consumed, pending(owner)) == (skill, [good.pk], {again.pk})
    assert "use the other card" in revision.instructions
    assert "“balance is not enough”" not in revision.instructions
    [refusal] = report.refused
    assert refusal.experience_ids == (again.pk,)
    assert f"was rejected with {asked}" in refusal.reason


@pytest.mark.parametrize("how", ["edited", "by hand", "rolled back"])
def test_what_a_person_struck_out_is_remembered_as_what_was_rejected(owner, held, how):
    skill = make_skill(owner, make_content(name="pay-order"))
    first, text = skill.current_revision, Content.of(skill)
    make_experience(owner)
    lines = ["3. Say the amount first.", f"4. {BAD}"]
    [asked] = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, *lines))).proposed
    waiting = SkillRevision.objects.get(pk=asked)
    kept = replace(text, instructions=f"{text.instructions}\n{lines[0]}")
    if how == "edited":
        edit_proposal(proposal=waiting, content=kept, author=None, may_decide=True)
    else:
        skill = approve(revision=waiting)
        if how == "by hand":
            edit_skill(skill=skill, base=waiting, content=kept, author=None, may_decide=True)
        else:
            rollback(skill=skill, to=first, reason="They were angry.")
    row = make_experience(owner)

    report = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, f"7. {BAD}")))

    assert [refusal.reason for refusal in report.refused] == [
        f"“{BAD}” was struck out of {asked}, and fewer than 2 new sessions speak for it."
    ]
    assert pending(owner) == {row.pk}


@pytest.mark.parametrize("then", ["published", "approved as it is"])
def test_a_line_that_the_first_of_two_drafts_struck_out_is_remembered_too(owner, held, then):
    skill = make_skill(owner, make_content(name="pay-order"))
    make_experience(owner)
    lines = ["3. Say the amount first.", f"4. {BAD}", "5. Ask for a receipt of it."]
    [asked] = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, *lines))).proposed
    first = SkillRevision.objects.get(pk=asked)

    def draft(proposal: SkillRevision, *kept: str, publish: bool = False) -> SkillRevision:
        base = skill.current_revision
        text = replace(Content.of(proposal), instructions="\n".join([base.instructions, *kept]))
        return edit_proposal(proposal=proposal, content=text, author=None, may_decide=True, publish=publish)

    waiting = draft(first, lines[0], lines[2])
    if then == "approved as it is":
        approve(revision=waiting)
    else:
        draft(waiting, lines[0], publish=True)
    row = make_experience(owner)
    skill.refresh_from_db()

    report = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, f"7. {BAD}")))

    assert [refusal.reason for refusal in report.refused] == [
        f"“{BAD}” was struck out of {asked}, and fewer than 2 new sessions speak for it."
    ]
    assert pending(owner) == {row.pk}


def test_a_draft_that_was_rejected_struck_nothing_out(owner, held):
    skill = make_skill(owner, make_content(name="pay-order"))
    make_experience(owner)
    [asked] = evolve(
        owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, "3. Say it first.", f"4. {BAD}"))
    ).proposed
    text = replace(Content.of(skill), instructions=f"{skill.instructions}\n3. Say it first.")
    draft = edit_proposal(
        proposal=SkillRevision.objects.get(pk=asked), content=text, author=None, may_decide=True,
        publish=False,
    )  # fmt: skip
    reject(revision=draft, reason="It left out what matters.")
    make_experience(owner)

    report = evolve(owner=owner, claim=held, proposer=Scripted(edit_of(owner, skill, f"3. {BAD}")))

    assert (report.refused, len(report.proposed)) == ([], 1)


class TestEditsThatAddUp:
    """Each within the gates, together more than one edit may change."""

    LINES = tuple(f"{n}. Say the word number {n} of the long list to whoever asks." for n in range(1, 25))

    def rewriting(self, owner, skill, start: int) -> Operation:
        """An edit of six further lines, from `start` on."""
        target = Library(owner).get(skill.pk)
        lines = list(self.LINES)
        for place in range(start + 6):
            lines[place] = f"{place + 1}. Tell nobody, whatever happens, about item {place * 7}."
        lines_before = list(self.LINES)
        for place in range(start):
            lines_before[place] = lines[place]
        before = replace(target.content, instructions="\n".join(lines_before))
        return Operation(
            action="edit",
            content=replace(before, instructions="\n".join(lines)),
            experience_ids=(),
            rationale="Said.",
            target=replace(target, content=before),
        )

    @pytest.fixture
    def skill(self, owner):
        return make_skill(owner, make_content(name="say-words", instructions="\n".join(self.LINES)))

    def operations(self, owner, skill):
        rows = [make_experience(owner, topic="tool:say") for _ in range(3)]
        return [
            replace(self.rewriting(owner, skill, 6 * place), experience_ids=(row.pk,))
            for place, row in enumerate(rows)
        ]

    @pytest.mark.parametrize("runs", [1, 3])
    def test_do_not_rewrite_what_is_published(self, owner, skill, runs):
        operations = self.operations(owner, skill)
        rounds = [operations] if runs == 1 else [[operation] for operation in operations]
        refused = []
        for answer in rounds:
            held = claim(owner=owner, trigger=RunTrigger.COMMAND)
            refused += evolve(owner=owner, claim=held, proposer=Scripted(*answer)).refused
            held.end("finished")

        [reason] = [refusal.reason for refusal in refused if "cumulative" in refusal.reason]
        assert reason.startswith("It is cumulative: with the edits before it, it takes ")
        waiting = SkillRevision.objects.get(state=RevisionState.PROPOSED)
        assert waiting.instructions.count("Tell nobody") < 13
        assert len(pending(owner)) >= 1

    def test_nor_under_automatic_where_each_is_published_at_once(self, owner, skill, held, settings):
        settings.MIRIX_REVIEW_POLICY = "automatic"
        operations = self.operations(owner, skill)

        report = evolve(owner=owner, claim=held, proposer=Scripted(*operations))

        assert any("cumulative" in refusal.reason for refusal in report.refused)
        skill.refresh_from_db()
        assert skill.instructions.count("Tell nobody") < 13

    def test_may_add_and_the_reviewer_is_told_how_much(self, owner, skill, held):
        target = Library(owner).get(skill.pk)
        rows = [make_experience(owner, topic="tool:say") for _ in range(3)]
        operations, text = [], target.content.instructions
        for row, word in zip(rows, WORDS, strict=False):
            view = replace(target, content=replace(target.content, instructions=text))
            text += "".join(f"\n- Where they say {word} {n}, answer with {word}{n} alone." for n in range(14))
            content = replace(target.content, instructions=text)
            operations.append(
                Operation(
                    action="edit", content=content, experience_ids=(row.pk,), rationale="Said.", target=view
                )
            )

        report = evolve(owner=owner, claim=held, proposer=Scripted(*operations))

        assert report.refused == []
        waiting = SkillRevision.objects.get(pk=report.proposed[0])
        assert waiting.instructions == text
        assert "rewritten" in waiting.risk_flags
        assert waiting.rationale.endswith("In all it rewrites 44% of the instructions.")
        assert approve(revision=waiting).instructions == text
