"""Lessons that no model was asked about: a run goes on with them a day after the last one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from skills.models import AutoDreamRun
from skills.unasked import trigger_unasked
from tests.factories import make_experience, make_owner, make_run

pytestmark = pytest.mark.django_db


def finished(owner, hours: float, **fields: Any) -> AutoDreamRun:
    ended = timezone.now() - timedelta(hours=hours)
    return make_run(owner, **({"state": "finished", "finished_at": ended} | fields))


def test_a_day_after_the_last_run_another_goes_on(owner, chat_server):
    make_experience(owner)
    finished(owner, 25)
    assert trigger_unasked() == 1
    run = AutoDreamRun.objects.get(state="queued")
    assert (run.end_user, run.trigger) == (owner.end_user, "automatic")
    assert trigger_unasked() == 0  # that one is open


def test_each_owner_is_looked_at_alone(owner, stranger, chat_server):
    for each in (owner, stranger):
        make_experience(each)
    finished(owner, 25)
    finished(stranger, 1)
    make_owner(owner.organization)
    assert trigger_unasked() == 1
    assert AutoDreamRun.objects.get(state="queued").end_user == owner.end_user


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "consumed"},
        {"quarantined": True},
        {"verified": False, "credibility": 0.2},
        {"considered_by": "scripted evolve-1"},
    ],
)
def test_what_nobody_would_be_asked_about_begins_nothing(owner, chat_server, fields):
    make_experience(owner, **fields)
    assert trigger_unasked() == 0


@pytest.mark.parametrize("run", [{"hours": 1}, {"hours": 1, "state": "failed"}])
def test_within_a_day_of_a_run_nothing_begins(owner, chat_server, run):
    make_experience(owner)
    finished(owner, 50)
    finished(owner, **run)
    assert trigger_unasked() == 0


def test_rules_are_not_asked_again(owner):
    make_experience(owner)
    assert trigger_unasked() == 0


def test_where_no_run_begins_by_itself_this_does_not_either(owner, chat_server, settings):
    settings.MIRIX_SKILL_TRIGGER_SESSION_THRESHOLD = 0
    make_experience(owner)
    assert trigger_unasked() == 0
