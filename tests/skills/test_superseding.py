"""Lessons that a newer one takes the place of."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from skills.evolution.lapsing import settle_outdated
from skills.models import RunTrigger, SkillExperience
from skills.runs import claim
from skills.selectors.experiences import pending_experiences
from skills.superseding import NotSuperseded, is_retold, revive_orphans, supersede, supersede_retold
from tests.factories import make_attempt, make_experience, make_member, make_run, make_session

pytestmark = pytest.mark.django_db
TURNS = [{"role": "user", "content": "No, use the other card."}] * 4


def of_session(owner, session=None, *, days: int = 0, **fields) -> SkillExperience:
    """A lesson of a session whose last turn was so many days ago."""
    session = session or make_session(owner, TURNS)
    type(session).objects.filter(pk=session.pk).update(last_turn_at=timezone.now() - timedelta(days=days))
    return make_experience(owner, session, **fields)


def pending(owner) -> set[str]:
    return set(pending_experiences(owner=owner).values_list("pk", flat=True))


def test_the_newer_one_is_named_and_used_in_its_place(owner):
    old, new = of_session(owner, days=2), of_session(owner, days=1)

    supersede(experience=old, by=new)

    assert (old.status, old.superseded_by, list(new.superseded.all())) == ("superseded", new, [old])
    assert pending(owner) == {new.pk}


def test_within_a_session_the_later_turn_is_newer(owner):
    session = make_session(owner, TURNS)
    first, second = (make_experience(owner, session, turn_seq=seq) for seq in (1, 3))

    with pytest.raises(NotSuperseded, match=f"{first.pk} is not newer than {second.pk}"):
        supersede(experience=second, by=first)
    supersede(experience=first, by=second)

    assert pending(owner) == {second.pk}


@pytest.mark.parametrize(
    ("of_old", "of_new", "why"),
    [
        ({"days": 1}, {"days": 2}, "is not newer than"),
        ({"status": "consumed"}, {}, "is consumed already"),
        ({"status": "superseded"}, {}, "is superseded already"),
        ({}, {"quarantined": True}, "is quarantined"),
        ({}, {"status": "superseded"}, "is superseded itself"),
        ({}, {"verified": False, "credibility": 0.3}, "is not verified, and"),
    ],
)
def test_what_cannot_take_the_place_of_another(owner, of_old, of_new, why):
    old = of_session(owner, **{"days": 3} | of_old)
    new = of_session(owner, **of_new)
    before = list(SkillExperience.objects.order_by("pk").values())

    with pytest.raises(NotSuperseded, match=why):
        supersede(experience=old, by=new)

    assert list(SkillExperience.objects.order_by("pk").values()) == before


def test_one_of_another_end_user_takes_nothing(owner, stranger):
    old, theirs = of_session(owner, days=2), of_session(stranger)

    with pytest.raises(NotSuperseded, match="are not both there"):
        supersede(experience=old, by=theirs)

    old.refresh_from_db()
    assert old.status == "pending"


def test_what_names_another_is_superseded_says_the_database(owner):
    old, new = of_session(owner, days=2), of_session(owner)

    with pytest.raises(IntegrityError, match="experience_superseded_by_status"):
        SkillExperience.objects.filter(pk=old.pk).update(superseded_by=new)


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"title": "Use the OTHER cards"}, True),
        ({"title": "Use the other bank"}, False),
        ({"title": "Use the other card", "topic": "tool:ship"}, False),
        ({"title": "Use the other card", "experience_type": "worth_avoiding"}, False),
        ({"title": "Use the other card 2 times"}, False),
        ({"title": ""}, False),
    ],
)
def test_the_same_lesson_is_one_topic_one_kind_one_title(fields, same):
    told = {"topic": "tool:pay", "experience_type": "worth_learning", "title": "Use the other card"}

    assert is_retold(SkillExperience(**told), SkillExperience(**told | fields)) is same


def test_no_title_says_the_same_as_no_title():
    blank = {"topic": "tool:pay", "experience_type": "worth_learning", "title": ""}

    assert not is_retold(SkillExperience(**blank), SkillExperience(**blank))


def test_a_session_that_went_on_speaks_once_for_a_lesson(owner):
    session = make_session(owner, TURNS)
    kept = make_experience(owner, session, title="Ship on Mondays", turn_seq=1)
    old = make_experience(owner, session, title="Use the other card", turn_seq=1)
    elsewhere = make_experience(owner, title="Use the other card")
    new = make_experience(owner, session, title="Use the other card.", turn_seq=3)

    assert supersede_retold(session=session, experiences=[new]) == 1

    old.refresh_from_db()
    assert old.superseded_by == new
    assert pending(owner) == {kept.pk, elsewhere.pk, new.pk}  # another session is another voice


def test_one_whose_newer_one_was_erased_is_pending_again(owner):
    held = claim(owner=owner, trigger=RunTrigger.COMMAND)
    session = make_session(owner, TURNS)
    attempt = make_attempt(make_run(owner), session)
    old = of_session(owner, session, days=2, attempt=attempt, considered_by="a model")
    new = of_session(owner)
    supersede(experience=old, by=new)
    imported = of_session(owner, days=3, status="superseded")

    settle_outdated(owner=owner, claim=held)
    assert pending(owner) == {new.pk}
    new.session.delete()
    settle_outdated(owner=owner, claim=held)

    old.refresh_from_db()
    assert (old.status, old.superseded_by, old.considered_by) == ("pending", None, "")
    imported.refresh_from_db()
    assert imported.status == "superseded"
    assert revive_orphans(owner=owner) == 0


def test_the_api_and_the_admin_say_what_took_its_place(owner, api):
    old = of_session(owner, days=2, title="Ask <b>later</b>")
    new = of_session(owner, title="Ask <i>now</i>")
    supersede(experience=old, by=new)
    reviewer = Client()
    reviewer.force_login(make_member(owner.organization))

    assert api.get(f"/v1/experiences/{old.pk}").json()["superseded_by_id"] == new.pk
    assert api.get(f"/v1/experiences/{new.pk}").json()["superseded_by_id"] is None
    page = reverse("admin:skills_skillexperience_change", args=[old.pk])
    newer = reverse("admin:skills_skillexperience_change", args=[new.pk])
    assert f'<a href="{newer}">Ask &lt;i&gt;now&lt;/i&gt;</a>' in reviewer.get(page).content.decode()
    assert f'<a href="{page}">Ask &lt;b&gt;later&lt;/b&gt;</a>' in reviewer.get(newer).content.decode()
