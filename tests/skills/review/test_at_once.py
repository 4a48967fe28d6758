"""Many at one skill: runs while a proposal waits, and a person in the middle of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skills.evolution.curator import evolve
from skills.evolution.types import Operation
from skills.models import RunTrigger, Skill, SkillExperience, SkillRevision
from skills.review.editing import edit_skill
from skills.review.publishing import approve
from skills.runs import claim
from tests.factories import make_content, make_experience, make_proposal, make_session

PAY = make_content(
    name="pay-order",
    description="Use when somebody pays an order.",
    instructions="".join(f"{number}. Step {number} of how an order is paid.\n" for number in range(1, 21)),
)


class Adding:
    """A proposer that adds lines to one skill, one operation and one experience for each."""

    name = "llm"

    def __init__(self, label: str, operations: int) -> None:
        self.label, self.operations = label, operations

    def is_ready(self, experiences, candidates):
        return True

    def propose(self, experiences, candidates):
        target = next(view for view in candidates if view.content.name == "pay-order")
        made = []
        for number, experience in zip(range(self.operations), experiences, strict=False):
            text = f"{target.content.instructions}Line {self.label}-{number}.\n"
            content = replace(target.content, instructions=text)
            ids = (experience.id,)
            made.append(
                Operation(
                    action="edit", content=content, experience_ids=ids, rationale="Seen.", target=target
                )
            )
            target = replace(target, content=content)
        return made


def lesson(owner) -> SkillExperience:
    session = make_session(owner, [{"role": "user", "content": "No, use the other card."}])
    return make_experience(owner, session, experience_type="worth_avoiding", topic="tool:pay_order")


def published(owner) -> Skill:
    return approve(revision=make_proposal(owner, PAY))


def now(skill: Skill) -> Skill:
    return Skill.objects.get(pk=skill.pk)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("Line ")]


@pytest.mark.django_db
def test_six_operations_of_one_run_and_three_more_runs_are_one_proposal(owner):
    skill = published(owner)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    lessons = [lesson(owner) for _ in range(6)]
    report = evolve(owner=owner, claim=held, proposer=Adding("first", 6))
    assert (report.refused, len(report.proposed), len(report.consumed)) == ([], 1, 6)

    for number in range(3):
        lessons.append(lesson(owner))
        assert evolve(owner=owner, claim=held, proposer=Adding(f"later{number}", 1)).refused == []

    proposal = SkillRevision.objects.get(state="proposed")
    assert SkillRevision.objects.filter(state="superseded").count() == 8
    assert (now(skill).version, lines(now(skill).instructions)) == ("0.1.0", [])

    approve(revision=proposal)

    expected = [f"Line first-{number}." for number in range(6)] + [f"Line later{n}-0." for n in range(3)]
    assert (now(skill).version, lines(now(skill).instructions)) == ("0.1.1", expected)
    assert set(proposal.experiences.all()) == set(lessons)
    assert set(SkillExperience.objects.values_list("status", flat=True)) == {"consumed"}


@pytest.mark.django_db
def test_what_a_person_publishes_in_the_middle_of_a_run_is_not_overwritten(owner):
    skill = published(owner)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    first = lesson(owner)

    class Slow(Adding):
        def propose(self, experiences, candidates):
            edit_skill(
                skill=skill, base=skill.current_revision, author=None, may_decide=True,
                content=replace(PAY, instructions=PAY.instructions + "Line of a person.\n"),
            )  # fmt: skip
            return super().propose(experiences, candidates)

    report = evolve(owner=owner, claim=held, proposer=Slow("run", 1))

    assert [refusal.reason for refusal in report.refused] == [
        "“pay-order” was published anew as 0.1.1 meanwhile."
    ]
    first.refresh_from_db()
    assert (first.status, report.proposed) == ("pending", [])

    (anew,) = evolve(owner=owner, claim=held, proposer=Adding("run", 1)).proposed
    approve(revision=SkillRevision.objects.get(pk=anew))
    assert lines(now(skill).instructions) == ["Line of a person.", "Line run-0."]


@pytest.mark.django_db
def test_support_goes_to_no_text_that_changed_in_the_middle_of_a_run(owner):
    skill = published(owner)
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    lesson(owner)

    class Confirming(Adding):
        def propose(self, experiences, candidates):
            edit_skill(
                skill=skill, base=skill.current_revision, author=None, may_decide=True,
                content=replace(PAY, instructions="1. Something else.\n"),
            )  # fmt: skip
            ids = (experiences[0].id,)
            return [
                Operation(
                    action="confirm", content=PAY, experience_ids=ids, rationale="", target=candidates[0]
                )
            ]

    report = evolve(owner=owner, claim=held, proposer=Confirming("run", 1))

    assert [refusal.reason for refusal in report.refused] == [
        "“pay-order” was published anew as 0.1.1 meanwhile."
    ]
    assert not SkillExperience.objects.exclude(status="pending").exists()
    assert not now(skill).current_revision.experiences.exists()
