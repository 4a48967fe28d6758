"""Experiences released from quarantine."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
from django.db import connection

from mirix.tenants.audit import SYSTEM, Actor
from mirix.tenants.models import AuditEvent
from skills.models import SkillExperience
from skills.quarantine import release_experience
from skills.review.errors import ReasonRequired
from skills.selectors.experiences import pending_experiences
from tests.factories import make_experience, make_member, make_owner

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(owner) -> SkillExperience:
    return make_experience(owner, quarantined=True, quarantine_reason="Only a tool says so.")


def test_evolution_may_use_it_from_then_on(owner, held):
    assert list(pending_experiences(owner=owner)) == []

    assert release_experience(experience=held, actor=SYSTEM, reason=" I asked. ") is True

    assert list(pending_experiences(owner=owner)) == [held]
    assert (held.quarantined, held.quarantine_reason) == (False, "Only a tool says so.")
    assert (held.released_by_name, held.release_reason) == ("mirix", "I asked.")
    assert held.released_at is not None


def test_the_trail_says_who_and_holds_nothing_that_anybody_wrote(owner, held):
    actor = Actor.of_user(make_member(owner.organization, username="rita"))

    release_experience(experience=held, actor=actor, reason="I asked Mr Smith.")

    event = AuditEvent.objects.get()
    assert (event.action, event.actor_name) == ("experience.released", "rita")
    assert (event.target_type, event.target_id) == ("skillexperience", held.pk)
    assert (event.organization, event.details) == (owner.organization, {})


def test_again_changes_nothing(held):
    release_experience(experience=held, actor=SYSTEM, reason="First.")
    before = SkillExperience.objects.values().get()

    assert release_experience(experience=held, actor=SYSTEM, reason="Second.") is False

    assert SkillExperience.objects.values().get() == before
    assert AuditEvent.objects.count() == 1


def test_one_that_never_was_quarantined_is_left_alone(owner):
    experience = make_experience(owner)

    assert release_experience(experience=experience, actor=SYSTEM, reason="So.") is False

    assert experience.released_at is None
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("reason", ["", " \n", "\u200b", "\u3164\u00a0"])
def test_it_needs_a_reason(held, reason):
    with pytest.raises(ReasonRequired, match="a release needs a reason"):
        release_experience(experience=held, actor=SYSTEM, reason=reason)
    held.refresh_from_db()
    assert held.quarantined


def test_one_that_is_gone(held):
    SkillExperience.objects.all().delete()

    with pytest.raises(SkillExperience.DoesNotExist):
        release_experience(experience=held, actor=SYSTEM, reason="So.")
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_releases_it():
    held = make_experience(make_owner(), quarantined=True)
    barrier, results = Barrier(2), []

    def release(name: str) -> None:
        own = SkillExperience.objects.get(pk=held.pk)
        barrier.wait()
        actor = Actor(kind="user", name=name)
        results.append((name, release_experience(experience=own, actor=actor, reason=name)))
        connection.close()

    threads = [Thread(target=release, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    [winner] = [name for name, released in results if released]
    assert sorted(released for _, released in results) == [False, True]
    held.refresh_from_db()
    assert (held.released_by_name, held.release_reason) == (winner, winner)
    assert AuditEvent.objects.get().actor_name == winner
