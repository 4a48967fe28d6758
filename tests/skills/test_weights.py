"""A revision says at any time what its experiences weigh, whoever gave or took them."""

from __future__ import annotations

import threading
from random import Random

import pytest
from django.db import connection, connections, transaction
from django.db.models import Count, F, Max, Q

from skills.models import SkillExperience, SkillRevision
from tests.factories import make_experience, make_proposal, make_session

SUPPORT = SkillRevision.experiences.through


def stored() -> dict[str, tuple[float, int, int]]:
    return {
        row.pk: (row.priority, row.evidence_count, row.session_count) for row in SkillRevision.objects.all()
    }


def computed() -> dict[str, tuple[float, int, int]]:
    weights = SkillRevision.objects.values_list("pk").annotate(
        best=Max(F("experiences__importance") * F("experiences__credibility")),
        n=Count("experiences"),
        sessions=Count("experiences__session", distinct=True, filter=Q(experiences__quarantined=False)),
    )
    return {pk: (best or 0.0, count, sessions) for pk, best, count, sessions in weights}


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(3))
def test_the_weight_is_that_of_the_support_whatever_happens_to_it(owner, seed):
    chance = Random(seed)
    sessions = [make_session(owner), make_session(owner)]
    proposals = [make_proposal(owner) for _ in range(3)]
    scores = [(chance.random(), chance.random()) for _ in range(5)]
    experiences = [
        make_experience(owner, chance.choice(sessions), importance=importance, credibility=credibility)
        for importance, credibility in scores
    ]
    acts = {
        "add": lambda row, some: row.experiences.add(*some),
        "set": lambda row, some: row.experiences.set(some),
        "remove": lambda row, some: row.experiences.remove(*some),
        "clear": lambda row, some: row.experiences.clear(),
        "raw": lambda row, some: SUPPORT.objects.filter(skillexperience__in=some)._raw_delete("default"),
        "weigh": lambda row, some: SkillExperience.objects.filter(pk__in=[one.pk for one in some]).update(
            importance=chance.random(), quarantined=chance.random() < 0.5
        ),
    }
    for name in chance.choices(list(acts), weights=[6, 2, 2, 1, 1, 3], k=25):
        acts[name](chance.choice(proposals), chance.sample(experiences, 2))
        assert stored() == computed(), name


@pytest.mark.django_db
def test_what_loses_its_support_weighs_less(owner):
    heavy, light = (make_experience(owner, importance=score, credibility=1.0) for score in (0.75, 0.5))
    proposal = make_proposal(owner)
    proposal.experiences.add(heavy, light)
    assert stored() == {proposal.pk: (0.75, 2, 2)}

    heavy.delete()
    assert stored() == {proposal.pk: (0.5, 1, 1)}

    light.session.delete()
    assert stored() == {proposal.pk: (0.0, 0, 0)}


@pytest.mark.django_db
def test_filling_weighs_what_is_there_and_again_changes_nothing(owner):
    proposal = make_proposal(owner)
    proposal.experiences.add(make_experience(owner, importance=0.5, credibility=0.5))
    SkillRevision.objects.update(priority=0.0, evidence_count=0, session_count=0)
    for _ in range(2):
        with connection.cursor() as cursor:
            cursor.execute("SELECT skills_weigh(%s::text[])", [[proposal.pk]])
        assert stored() == {proposal.pk: (0.25, 1, 1)}


@pytest.mark.django_db(transaction=True)
def test_of_two_who_add_at_once_both_count(owner):
    first, second = (make_experience(owner, importance=score, credibility=1.0) for score in (0.5, 0.75))
    proposal = make_proposal(owner)

    def add_second() -> None:
        proposal.experiences.add(second)
        connections.close_all()

    other = threading.Thread(target=add_second)
    with transaction.atomic():
        proposal.experiences.add(first)
        other.start()
        other.join(0.3)
        assert other.is_alive()  # it waits for the row
    other.join(10)

    assert stored() == {proposal.pk: (0.75, 2, 2)}
