"""Many at one skill: runs while a proposal waits, a person in the middle of a run, reviewers beside runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from skills.evolution.curator import evolve
from skills.evolution.types import Operation
from skills.models import ReviewDecision, RunTrigger, Skill, SkillExperience, SkillRevision
from skills.review.editing import edit_skill
from skills.review.publishing import approve
from skills.runs import claim
from tests.factories import make_content, make_experience, make_proposal, make_session
from tests.processes import Process

PAY = make_content(
    name="pay-order",
    description="Use when somebody pays an order.",
    instructions="".join(f"{number}. Step {number} of how an order is paid.\n" for number in range(1, 21)),
)
ACT = """
import sys
import time
from dataclasses import replace
from skills.content import Content
from skills.models import Skill, SkillRevision
from skills.review.editing import edit_proposal, edit_skill
from skills.review.errors import ReviewError
from skills.review.publishing import approve, reject

def once():
    skill = Skill.objects.select_related("current_revision").get(pk={pk!r})
    waiting = SkillRevision.objects.filter(skill=skill, state="proposed").first()
    if {act!r} == "edit":
        began = waiting or skill
        line = f"Line {act}{number}-{{said.count('done')}}.\\n"
        text = replace(Content.of(began), instructions=began.instructions + line)
        if waiting is None:
            edit_skill(skill=skill, base=skill.current_revision, content=text, author=None, may_decide=True)
        else:
            edit_proposal(proposal=waiting, content=text, author=None, may_decide=True)
    elif waiting is None:
        return "nothing"
    elif {act!r} == "approve":
        approve(revision=waiting)
    else:
        reject(revision=waiting, reason="No.")
    return "done"

print("ready", flush=True)
sys.stdin.readline()
said = []
for _ in range(60):
    try:
        said.append(once())
        time.sleep(0.1 if said[-1] == "nothing" else 0)  # the run is to get on
    except ReviewError as error:
        said.append(type(error).__name__)
    if said.count("done") == {{"approve": 99, "reject": 1, "edit": 3}}[{act!r}]:
        break
print(*said, flush=True)
"""
RUN = """
import sys
from mirix.tenants.owners import Owner
from skills.evolution.curator import evolve
from skills.models import Skill, SkillExperience
from skills.runs import claim
from tests.skills.review.test_at_once import Adding

skill = Skill.objects.get(pk={pk!r})
owner = Owner(organization=skill.organization, end_user=skill.end_user)
print("ready", flush=True)
sys.stdin.readline()
held = claim(owner=owner, trigger="command")
for number in range(50):
    if not SkillExperience.objects.filter(status="pending").exists():
        break
    evolve(owner=owner, claim=held, proposer=Adding(f"run{{number}}", 2))
print("done", flush=True)
"""


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


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_eight_reviewers_and_an_evolution_run_on_one_skill_lose_nothing(owner):
    """Whatever came first: a chain of versions of which each keeps what the one before says."""
    skill = published(owner)
    for _ in range(8):
        lesson(owner)
    acts = ["approve", "approve", "approve", "reject", "reject", "edit", "edit", "edit"]
    scripts = [ACT.format(pk=skill.pk, act=act, number=number) for number, act in enumerate(acts)]
    processes = [Process(script) for script in [*scripts, RUN.format(pk=skill.pk)]]
    try:
        for process in processes:
            assert process.line() == "ready", process.end()
        for process in processes:
            process.go()
        said = [process.end() for process in processes]
    finally:
        for process in processes:
            process.__exit__()
    assert {status for status, _, _ in said} == {0}, [errors for _, _, errors in said]

    assert said[-1][1].split() == ["done"]
    for act, (_, out, _) in zip(acts, said, strict=False):
        if act == "edit":
            assert out.split()[-1] == "done"
    after = now(skill)
    versions = list(after.revisions.filter(state="published"))
    by_version = {revision.version: revision for revision in versions}
    numbers = [f"0.1.{number}" for number in range(len(versions))]
    assert sorted(by_version, key=lambda version: int(version.split(".")[2])) == numbers
    assert after.version == numbers[-1]
    for before, later in pairwise(numbers):
        assert by_version[later].base == by_version[before]
        assert by_version[later].instructions.startswith(by_version[before].instructions)
    told = lines(after.instructions)
    assert set(Counter(told).values()) <= {1}
    assert {f"Line edit{number}-{time}." for number in (5, 6, 7) for time in range(3)} <= set(told)
    assert after.revisions.filter(state="proposed").count() <= 1
    decided = Counter(ReviewDecision.objects.values_list("revision", flat=True))
    assert set(decided.values()) == {1}
    for revision in SkillRevision.objects.filter(state__in=["published", "rejected"]):
        assert decided[revision.pk] == 1
    for experience in SkillExperience.objects.all():
        stands = experience.revisions.exclude(state="superseded").exists()
        assert experience.status == ("consumed" if stands else "pending")


TWICE = """
import sys
from skills.models import Skill, SkillRevision
from skills.review import history

first = SkillRevision.objects.get(pk={first!r})
for act in {acts!r}:
    skill = Skill.objects.select_related("organization", "current_revision").get(pk={pk!r})
    print("ready", flush=True)
    sys.stdin.readline()
    more = {{"to": first}} if act == "rollback" else {{}}
    print(getattr(history, act)(skill=skill, reason="Twice.", **more).pk, flush=True)
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_what_two_do_to_a_skill_at_once_is_done_once(owner):
    skill = published(owner)
    first = skill.current_revision
    assert first is not None
    first.experiences.add(lesson(owner))
    edit_skill(
        skill=skill, base=first, author=None, may_decide=True,
        content=replace(PAY, instructions="1. Something else.\n"),
    )  # fmt: skip
    acts = ["rollback", "quarantine", "release", "archive", "restore"]
    script = TWICE.format(pk=skill.pk, first=first.pk, acts=acts)

    with Process(script) as one, Process(script) as other:
        for number, act in enumerate(acts, start=2):
            assert (one.line(), other.line()) == ("ready", "ready")
            for process in (one, other):
                process.go()
            made = {one.line(), other.line()}
            revision = SkillRevision.objects.get(pk=made.pop())
            assert made == set()
            assert (revision.action, revision.version) == (act, f"0.1.{number}")
            assert ReviewDecision.objects.filter(revision=revision).count() == 1
        assert (one.end()[0], other.end()[0]) == (0, 0)
    assert (now(skill).version, now(skill).status, now(skill).instructions) == (
        "0.1.6",
        "active",
        PAY.instructions,
    )
