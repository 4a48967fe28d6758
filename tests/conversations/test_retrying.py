"""Sessions that were given up, or rest after a failure, made due again by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.models import Session
from conversations.operating import retry_session, retry_sessions
from conversations.selectors import distillable_sessions, unsuccessful
from mirix.tenants.audit import SYSTEM
from mirix.tenants.models import AuditEvent
from skills.models import AutoDreamRun
from tests.factories import make_owner, make_run, make_session

pytestmark = pytest.mark.django_db
TURNS = [{"role": "user", "content": "No, the other one."}]


def dead(owner, **fields) -> Session:
    return make_session(owner, TURNS, **({"state": "dead", "attempts": 5, "last_error": "No JSON."} | fields))


def test_one_that_was_given_up_has_all_of_its_attempts_again(owner):
    session = dead(owner)

    assert retry_session(session=session, actor=SYSTEM) is True

    session.refresh_from_db()
    assert (session.state, session.attempts, session.last_error) == ("sealed", 0, "No JSON.")
    assert list(distillable_sessions(owner=owner)) == [session]
    event = AuditEvent.objects.get()
    assert (event.action, event.target_type, event.target_id) == ("session.retried", "session", session.pk)
    assert event.details == {"state": "dead", "attempts": 5}


def test_a_run_is_asked_for_at_once(owner):
    retry_session(session=dead(owner), actor=SYSTEM)

    run = AutoDreamRun.objects.get()
    assert (run.state, run.trigger, run.end_user) == ("queued", "automatic", owner.end_user)


def test_no_run_where_they_do_not_start_by_themselves_or_one_is_open(owner, settings):
    settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 0
    retry_session(session=dead(owner), actor=SYSTEM)
    assert not AutoDreamRun.objects.exists()

    settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 5
    make_run(owner, state="queued")
    retry_session(session=dead(owner), actor=SYSTEM)
    assert AutoDreamRun.objects.count() == 1


def test_one_that_rests_is_due_now(owner):
    later = timezone.now() + timedelta(hours=6)
    failed = dead(owner, state="sealed", attempts=2, next_attempt_at=later)
    deferred = dead(owner, state="sealed", attempts=0, next_attempt_at=later)

    assert retry_sessions(sessions=[failed, deferred], actor=SYSTEM) == {failed.pk, deferred.pk}

    assert set(distillable_sessions(owner=owner)) == {failed, deferred}


@pytest.mark.parametrize(
    "fields",
    [
        {"state": "sealed", "attempts": 0},
        {"state": "open", "attempts": 1},
        {"state": "distilled", "attempts": 0, "distilled_through": 1},
        {"distilled_through": 1},
    ],
    ids=["sealed", "open", "distilled", "given up, its turns pruned"],
)
def test_nothing_is_done_where_nothing_failed_or_nothing_is_left(owner, fields):
    session = dead(owner, **fields)
    before = Session.objects.values().get()

    assert retry_session(session=session, actor=SYSTEM) is False

    assert Session.objects.values().get() == before
    assert not AuditEvent.objects.exists()
    assert not AutoDreamRun.objects.exists()


def test_again_changes_nothing(owner):
    session = dead(owner)
    retry_session(session=session, actor=SYSTEM)
    before = Session.objects.values().get()

    assert retry_session(session=session, actor=SYSTEM) is False
    assert Session.objects.values().get() == before
    assert AuditEvent.objects.count() == 1


def test_of_several_each_owner_has_one_run(owner):
    other = make_owner(owner.organization, "bob")
    sessions = [dead(owner), dead(owner), dead(other)]
    left = make_session(other, TURNS)

    assert retry_sessions(sessions=[*sessions, left], actor=SYSTEM) == {session.pk for session in sessions}

    assert AutoDreamRun.objects.count() == 2
    assert AuditEvent.objects.count() == 3
    assert not unsuccessful(Session.objects.all()).exists()
