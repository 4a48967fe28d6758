from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from skills.selectors.proposals import QUEUE_ORDER, evidence_of, find_revision, proposals_of
from tests.factories import make_experience, make_proposal, make_session, make_skill

pytestmark = pytest.mark.django_db


def supported(owner, *scores: tuple[float, float]):
    proposal = make_proposal(owner)
    proposal.experiences.add(
        *(
            make_experience(owner, importance=importance, credibility=credibility)
            for importance, credibility in scores
        )
    )
    return proposal


def test_the_queue_puts_the_most_important_first(owner):
    weak = supported(owner, (0.5, 0.5), (0.5, 0.5))
    strong = supported(owner, (0.1, 0.1), (0.9, 0.9))
    bare = supported(owner)
    early, late = supported(owner, (0.8, 0.8)), supported(owner, (0.8, 0.8))
    twice = supported(owner, (0.8, 0.8), (0.1, 0.9))
    make_proposal(owner, state="rejected")

    queue = list(proposals_of(organization=owner.organization).order_by(*QUEUE_ORDER))

    assert queue == [strong, twice, early, late, weak, bare]
    assert queue[0].priority == pytest.approx(0.81)
    assert [row.evidence_count for row in queue] == [2, 2, 1, 1, 2, 0]


def test_of_equals_that_with_more_sessions_goes_first_and_a_copy_is_none(owner):
    copied, twice = supported(owner, (0.8, 0.8)), supported(owner, (0.8, 0.8), (0.1, 0.9))
    for _ in range(3):
        copied.experiences.add(
            make_experience(owner, make_session(owner, history_hash="a" * 64), importance=0.1)
        )
    copied.experiences.exclude(session__history_hash="a" * 64).delete()
    copied.experiences.update(importance=0.8, credibility=0.8)

    queue = list(proposals_of(organization=owner.organization).order_by(*QUEUE_ORDER))

    assert queue == [twice, copied]
    assert [(row.session_count, row.evidence_count) for row in queue] == [(2, 2), (1, 3)]


def test_the_queue_is_the_organizations_own(owner, stranger):
    make_proposal(stranger)

    assert not proposals_of(organization=owner.organization).exists()


def test_evidence_comes_with_its_turn_and_session_in_one_query(owner):
    proposal = supported(owner, (0.2, 0.9), (0.9, 0.9), (0.5, 0.9))

    with CaptureQueriesContext(connection) as captured:
        shown = [
            (experience.importance, experience.turn.content, experience.session.session_id != "")
            for experience in evidence_of(revision=proposal)
        ]

    assert shown == [(score, "No, use the other card.", True) for score in (0.9, 0.5, 0.2)]
    assert len(captured) == 1


def test_a_revision_is_found_in_its_organization_alone(owner, stranger):
    proposal = make_proposal(owner, skill=make_skill(owner))

    found = find_revision(organization=owner.organization, revision_id=proposal.pk)

    assert found == proposal
    assert found.evidence_count == 0
    assert find_revision(organization=stranger.organization, revision_id=proposal.pk) is None
    assert find_revision(organization=owner.organization, revision_id="rev-none") is None
