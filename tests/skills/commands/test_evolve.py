"""The command `evolve`: what it prints, and what an operator is told."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from skills.evolution import writing
from skills.models import AutoDreamRun, RunState, RunTrigger, SkillRevision
from skills.runs import claim
from tests.factories import make_experience, make_owner
from tests.skills.evolution.answers import answer, create

pytestmark = pytest.mark.django_db


def evolve(owner, *arguments: str) -> str:
    out = StringIO()
    call_command(
        "evolve",
        "--organization",
        owner.organization.name,
        "--user",
        owner.end_user.user_id,
        *arguments,
        stdout=out,
    )
    return out.getvalue()


def test_text(owner):
    make_experience(owner, title="Ask which card to use")
    make_experience(owner, title="Send it twice", topic="tool:send", verified=False, credibility=0.1)

    text = evolve(owner)

    revision = SkillRevision.objects.get()
    assert text == (
        f"proposed   pay ({revision.pk})\n"
        "refused    send: None of the cited experiences is verified.\n"
        "1 experience used; budget 2.\n"
    )


def test_json_and_the_run_it_leaves(owner):
    row = make_experience(owner)

    answer = json.loads(evolve(owner, "--json"))

    run = AutoDreamRun.objects.get()
    revision = SkillRevision.objects.get()
    assert answer == {
        "run_id": run.pk,
        "proposed": [revision.pk],
        "published": [],
        "consumed": [row.pk],
        "refused": [],
        "budget": 2,
    }
    assert (run.state, run.trigger, run.counts["proposals"]) == (
        RunState.FINISHED,
        RunTrigger.COMMAND,
        [revision.pk],
    )


def test_refusals_stand_in_the_notes_of_the_run(owner):
    row = make_experience(owner, verified=False, credibility=0.1)

    evolve(owner)

    assert AutoDreamRun.objects.get().notes == [
        {"reason": "None of the cited experiences is verified.", "name": "pay", "experience_ids": [row.pk]}
    ]


def test_nothing_to_do(owner):
    assert evolve(owner) == "0 experiences used; budget 0.\n"


def test_a_run_that_goes_on_is_not_disturbed(owner):
    held = claim(owner=owner, trigger=RunTrigger.API)
    make_experience(owner)

    with pytest.raises(CommandError, match=f"is busy: {held.run_id}"):
        evolve(owner)

    assert not SkillRevision.objects.exists()


def test_a_failure_ends_the_run(owner, monkeypatch):
    make_experience(owner)
    monkeypatch.setattr(writing, "propose", lambda **_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        evolve(owner)

    run = AutoDreamRun.objects.get()
    assert (run.state, run.error) == (RunState.FAILED, "ZeroDivisionError: division by zero")


def test_an_unknown_user_is_one_clear_line(owner, stranger):
    make_experience(stranger)
    unknown = make_owner(user_id="bob")

    with pytest.raises(CommandError, match="unknown user 'bob'"):
        call_command("evolve", "--organization", owner.organization.name, "--user", unknown.end_user.user_id)

    assert not SkillRevision.objects.exists()


def test_a_model_is_named_for_one_run(owner, chat_server):
    lesson = make_experience(owner)
    skill = create(lesson, name="pay", description="Paying. Use when paying.")
    chat_server.answer = lambda request: answer(skill)

    told = json.loads(evolve(owner, "--model", "larger", "--json"))

    run = AutoDreamRun.objects.get()
    assert [request.body["model"] for request in chat_server.requests] == ["larger"]
    assert told["consumed"] == [lesson.pk]
    assert (run.parameters, run.tokens) == ({"only": "evolve", "model": "larger"}, 110)


def test_the_name_of_a_model_has_a_limit(owner):
    with pytest.raises(CommandError, match="at most 128 characters"):
        evolve(owner, "--model", "m" * 129)
    assert not AutoDreamRun.objects.exists()
