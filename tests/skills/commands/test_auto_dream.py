"""The commands `auto_dream` and `distill`."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from conversations.models import Session
from mirix.tenants.models import OrganizationSettings
from skills import dream as dreaming
from skills import runs
from skills.distillation import get_distiller
from skills.evolution.estimating import about_proposing
from skills.evolution.llm import ANSWER_TOKENS
from skills.evolution.types import EvolutionReport
from skills.management import dreaming as door
from skills.models import AutoDreamRun, SkillExperience
from skills.runs import claim
from tests.factories import make_owner, make_session
from tests.skills.scripted import ScriptedDistiller, gibberish, nothing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def evolutions(monkeypatch) -> list[Any]:
    scripted = ScriptedDistiller(dull=nothing, odd=gibberish)
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": scripted)
    called: list[Any] = []

    def evolve(**arguments: Any) -> EvolutionReport:
        called.append(arguments["owner"])
        return EvolutionReport()

    monkeypatch.setattr(dreaming, "evolve", evolve)
    return called


def run(capsys, owner, *options: str, command: str = "auto_dream") -> str:
    call_command(command, "--organization", owner.organization.name, "--user", "alice", *options)
    return capsys.readouterr().out


def sealed(owner, content: str, session_id: str) -> Session:
    return make_session(owner, [{"role": "user", "content": content}], session_id=session_id)


def test_it_waits_for_a_run_that_goes_on_and_says_what_that_one_did(capsys, owner, monkeypatch):
    """The worker may have begun by itself, as after an import while `serve` runs."""
    sealed(owner, "No.", "s-1")
    other = claim(owner=owner, trigger="automatic")
    monkeypatch.setattr(runs.time, "sleep", lambda _: dreaming.dream(claim=other))

    answer = json.loads(run(capsys, owner, "--json"))

    assert answer["waited_for"] == [other.run_id]
    assert answer["sessions"] == {"distilled": 0, "empty": 0, "retry": 0, "dead": 0, "deferred": 0}
    assert Session.objects.get().state == "distilled"
    assert SkillExperience.objects.count() == 1


def test_it_tells_a_person_which_run_went_before(capsys, owner, monkeypatch):
    sealed(owner, "No.", "s-1")
    other = claim(owner=owner, trigger="automatic")
    monkeypatch.setattr(runs.time, "sleep", lambda _: dreaming.dream(claim=other))

    first, before, _ = run(capsys, owner).splitlines()

    assert first.startswith(f"{other.run_id} (automatic) is going on; waiting until it ends")
    assert before == f"{other.run_id}, which went before: 1 session distilled into 1 experience."


def test_it_says_what_became_of_each_session(capsys, owner, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    for content, session_id in (("No.", "s-1"), ("dull", "s-2"), ("odd", "s-3")):
        sealed(owner, content, session_id)

    assert run(capsys, owner).splitlines() == [
        "s-1: 1 experience",
        "s-2: nothing worth keeping",
        "s-3: to be tried again (The reply is no JSON: So I think)",
        "2 sessions distilled into 1 experience, 1 to be tried again.",
    ]
    finished = AutoDreamRun.objects.get()
    assert (finished.state, finished.trigger) == ("finished", "command")
    assert finished.parameters == {"last_n_sessions": 5}


def test_for_machines_it_is_one_document(capsys, owner):
    sealed(owner, "No.", "s-1")

    answer = json.loads(run(capsys, owner, "--json", "--last-n-sessions", "50"))

    finished = AutoDreamRun.objects.get()
    assert answer.pop("waited_for") == []
    results = answer.pop("results")
    assert results == [{"session_id": "s-1", "verdict": "ok", "experiences": 1, "error": ""}]
    assert answer == {
        "success": True,
        "message": "1 session distilled into 1 experience.",
        "run_id": finished.pk,
        "state": "finished",
        "dry_run": False,
        "last_dream_at": answer["last_dream_at"],
        "start_date": None,
        "end_date": None,
        "processed": {"procedural": {"total": 1, "removed": 0, "merged": 0, "conflicts_resolved": 0}},
        "skills_changed": 0,
        "changes": {"created": [], "edited": [], "deleted": []},
        "proposals": [],
        "sessions": {"distilled": 1, "empty": 0, "retry": 0, "dead": 0, "deferred": 0},
    }
    assert finished.parameters == {"last_n_sessions": 50}


def test_a_rerun_distils_nothing(capsys, owner):
    sealed(owner, "No.", "s-1")
    run(capsys, owner)

    assert run(capsys, owner) == "No session distilled.\n"
    assert SkillExperience.objects.count() == 1


def test_a_dry_run_leaves_no_trace(capsys, owner, evolutions):
    sealed(owner, "1234", "s-1")
    before = list(Session.objects.values())

    assert run(capsys, owner, "--dry-run") == (
        "Nothing was done. A run would distil 1 session with 1 turn and 4 characters.\n"
    )
    assert json.loads(run(capsys, owner, "--dry-run", "--json"))["would_distil"] == {
        "sessions": 1,
        "turns": 1,
        "characters": 4,
        "tokens": 0,
        "proposer_tokens": 0,
    }
    assert list(Session.objects.values()) == before
    assert AutoDreamRun.objects.count() == SkillExperience.objects.count() == len(evolutions) == 0


def test_with_a_model_a_dry_run_tells_tokens_and_asks_nobody(capsys, owner, chat_server, monkeypatch):
    monkeypatch.setattr(dreaming, "get_distiller", get_distiller)
    OrganizationSettings.objects.create(organization=owner.organization, daily_token_budget=12_345)
    sealed(owner, "x" * 4_000, "s-1")
    sealed(owner, "x" * 200_000, "s-2")
    before = rows()
    answer = json.loads(run(capsys, owner, "--dry-run", "--json", "--model", "larger"))
    estimate = get_distiller().estimate
    tokens = sum(estimate(characters=each, octets=each, turns=1) for each in (4_000, 200_000))
    proposing = about_proposing(owner=owner, sessions=2)
    assert proposing > 2 * ANSWER_TOKENS
    assert answer["would_distil"] == {
        "sessions": 2, "turns": 2, "characters": 204_000, "tokens": tokens, "proposer_tokens": proposing
    }  # fmt: skip
    assert answer["message"] == (
        "Nothing was done. A run would distil 2 sessions with 2 turns and 204,000 characters, "
        f"for about {tokens:,} tokens, and evolve skills for about {proposing:,} tokens. "
        "Today 12,345 are left of the organization's budget."
    )
    assert chat_server.calls == 0
    assert rows() == before


def rows() -> dict[str, list[Any]]:
    """Everything that is stored."""
    return {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for app in ("tenants", "conversations", "skills", "procrastinate")
        for model in apps.get_app_config(app).get_models()
    }


class Terminal(StringIO):
    """Standard error as a person sees it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_on_a_terminal_it_draws_how_far_it_is_and_nowhere_else(capsys, owner, monkeypatch, is_terminal):
    errors = Terminal() if is_terminal else StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    for number in range(3):
        sealed(owner, f"No, {number}.", f"s-{number}")
    assert run(capsys, owner).endswith("3 sessions distilled into 3 experiences.\n")
    drawn = errors.getvalue()
    assert ("Evolving skills" in drawn, "3/3" in drawn, drawn == "") == (
        is_terminal,
        is_terminal,
        not is_terminal,
    )


def test_a_model_of_too_long_a_name_is_refused(capsys, owner):
    with pytest.raises(CommandError, match="a model's name has at most 128 characters"):
        run(capsys, owner, "--model", "x" * 129)
    assert AutoDreamRun.objects.count() == 0


def test_a_model_that_is_not_used_is_said_to_be(capsys, owner):
    assert run(capsys, owner, "--model", "gpt-9") == (
        "No session distilled. The model 'gpt-9' was not used: this run distils by rules.\n"
    )


def test_distill_leaves_evolution_out(capsys, owner, evolutions):
    sealed(owner, "No.", "s-1")

    run(capsys, owner, command="distill")
    assert (SkillExperience.objects.count(), evolutions) == (1, [])
    assert AutoDreamRun.objects.get().parameters == {"last_n_sessions": 5, "evolving": False}
    run(capsys, owner)
    assert evolutions == [owner]


def test_only_the_named_owner_is_dreamt_of(capsys, owner, stranger):
    foreign = sealed(stranger, "Theirs.", "s-1")
    colleague = sealed(make_owner(owner.organization, "bob"), "Bob's.", "s-1")

    run(capsys, owner)

    for session in (foreign, colleague):
        session.refresh_from_db()
        assert session.state == "sealed"


def test_failed_sessions_can_be_tried_again_at_once(capsys, owner, stranger):
    resting = make_session(owner, [{"role": "user", "content": "No."}], session_id="s-1", attempts=2)
    resting.next_attempt_at = timezone.now() + timedelta(hours=1)
    resting.save()
    make_session(owner, [{"role": "user", "content": "No!"}], session_id="s-2", attempts=5, state="dead")
    foreign = make_session(stranger, [{"role": "user", "content": "No!"}], state="dead", attempts=5)
    assert run(capsys, owner) == "No session distilled.\n"
    run(capsys, owner, "--retry-failed", "--dry-run")
    assert run(capsys, owner) == "No session distilled.\n", "a dry run changes nothing"

    assert json.loads(run(capsys, owner, "--retry-failed", "--json"))["sessions"]["distilled"] == 2

    foreign.refresh_from_db()
    assert (foreign.state, foreign.attempts) == ("dead", 5)


class TestRefusals:
    def refusal(self, *options: str) -> str:
        with pytest.raises(CommandError) as refused:
            call_command("auto_dream", *options)
        return str(refused.value)

    def test_an_unknown_organization(self, db):
        assert "unknown organization 'nowhere'" in self.refusal("--organization=nowhere", "--user=alice")

    def test_an_unknown_user(self, owner):
        name = owner.organization.name
        assert "unknown user 'bob'" in self.refusal(f"--organization={name}", "--user=bob")

    def test_no_user(self, owner):
        assert "--user" in self.refusal(f"--organization={owner.organization.name}")

    @pytest.mark.parametrize("number", ["-1", "many", "1.5", "²", "1001", "9" * 20])
    def test_a_wrong_number(self, owner, number):
        name = owner.organization.name
        options = (f"--organization={name}", "--user=alice", f"--last-n-sessions={number}")
        assert f"'{number}' is not a whole number from 0 to 1000" in self.refusal(*options)

    def test_a_busy_owner(self, owner):
        held = claim(owner=owner, trigger="automatic")

        told = self.refusal(f"--organization={owner.organization.name}", "--user=alice", "--wait=0")

        assert told == f"{owner} is busy: {held.run_id} (automatic) is going on."
        assert AutoDreamRun.objects.count() == 1

    def test_a_wrong_patience(self, owner):
        told = self.refusal(f"--organization={owner.organization.name}", "--user=alice", "--wait=soon")

        assert "'soon' is not a whole number from 0 to 999999" in told

    def test_a_distiller_that_is_not_there(self, owner, monkeypatch):
        def no_distiller(model: str = "") -> None:
            raise ImproperlyConfigured("MIRIX_DISTILLER=llm: there is none.")

        monkeypatch.setattr(door, "get_distiller", no_distiller)

        told = self.refusal(f"--organization={owner.organization.name}", "--user=alice")

        assert told == "MIRIX_DISTILLER=llm: there is none."
        assert AutoDreamRun.objects.count() == 0

    def test_an_interrupt_keeps_what_was_done(self, owner, monkeypatch):
        sealed(owner, "No.", "s-1")

        def interrupted(**_: Any) -> EvolutionReport:
            raise KeyboardInterrupt

        monkeypatch.setattr(dreaming, "evolve", interrupted)
        with pytest.raises(CommandError) as refused:
            call_command("auto_dream", "--organization", owner.organization.name, "--user", "alice")

        assert refused.value.returncode == 130
        assert str(refused.value).startswith("Interrupted.")
        assert SkillExperience.objects.count() == 1
        assert AutoDreamRun.objects.get().error == "Interrupted."
