"""Sessions that rest: what an endpoint's failure costs, and what goes on when it is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from conversations.models import Session
from mirix.tenants.owners import Owner
from skills import dream as dreaming
from skills.answers import dream_answer
from skills.asking import Stopped
from skills.distillation.types import DistillerReply, Dropped
from skills.dream import dream
from skills.evolution.types import EvolutionReport
from skills.models import AutoDreamRun, DistillationAttempt, SkillExperience
from skills.resting import retry_failed
from skills.runs import claim
from skills.triggers import trigger_if_due
from tests.factories import make_session
from tests.skills.scripted import ScriptedDistiller, gibberish, lesson, one_lesson

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch, settings):
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    monkeypatch.setattr(dreaming, "evolve", lambda **_: EvolutionReport())


def sealed(owner: Owner, *contents: str) -> list[Session]:
    return [make_session(owner, [{"role": "user", "content": content}]) for content in contents]


def run(owner: Owner, monkeypatch, *args: Any, **scripts: Any) -> tuple[AutoDreamRun, ScriptedDistiller]:
    distiller = ScriptedDistiller(*args, **scripts)
    monkeypatch.setattr(dreaming, "get_distiller", lambda model="": distiller)
    return dream(claim=claim(owner=owner, trigger="command", parameters={"last_n_sessions": 50})), distiller


def unreachable(retry_after: float | None = None) -> Any:
    def script(turns, first_seq):
        return DistillerReply(
            verdict="retry",
            error="Connection refused.",
            fault="endpoint",
            retry_after=retry_after,
            calls=1,
        )

    return script


def rests(session: Session) -> float | None:
    """Seconds until the session is due."""
    session.refresh_from_db()
    until = session.next_attempt_at
    return None if until is None else (until - timezone.now()).total_seconds()


class TestWhatAnAttemptKeeps:
    def test_calls_what_was_dropped_and_what_was_seen(self, owner, monkeypatch):
        def partly(turns, first_seq):
            dropped = [Dropped(reason="no title", text='{"title": ""}')]
            return DistillerReply(
                verdict="ok", lessons=[lesson(turns[0])], dropped=dropped, flags=["fence"], calls=2
            )

        sealed(owner, "No.")
        run(owner, monkeypatch, partly)

        attempt = DistillationAttempt.objects.get()
        assert attempt.calls == 2
        assert attempt.dropped == [{"reason": "no title", "text": '{"title": ""}'}]
        assert attempt.flags == ["fence"]

    def test_evidence_is_looked_up_in_what_the_distiller_saw(self, owner, monkeypatch):
        def masked(turns, first_seq):
            seen = [replace(turn, content="[masked]") for turn in turns]
            return DistillerReply(verdict="ok", lessons=[lesson(turns[0])], seen=seen)

        sealed(owner, "Do it as the skill says, please.")
        run(owner, monkeypatch, masked)

        assert SkillExperience.objects.get().verified is False


class TestAnEndpointThatFails:
    def test_no_session_is_given_up_and_no_other_is_tried(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        sessions = sealed(owner, "one", "two", "three")

        finished, distiller = run(owner, monkeypatch, unreachable())

        assert distiller.calls == [("one", 1)]
        attempt = DistillationAttempt.objects.get()
        assert (attempt.verdict, attempt.error, attempt.calls) == ("retry", "Connection refused.", 1)
        for session in sessions:
            assert rests(session) == pytest.approx(300, abs=30)
            assert (session.state, session.attempts) == ("sealed", 0)
            assert session.last_error.endswith("Connection refused.")
        assert finished.state == "finished"
        assert finished.counts["sessions"] == {
            "distilled": 0, "empty": 0, "retry": 1, "dead": 0, "deferred": 2
        }  # fmt: skip
        (note,) = finished.notes
        assert note["reason"] == "The model's endpoint cannot be asked now. Connection refused."
        assert note["deferred"] == 2
        assert note["reason"] in dream_answer(finished)["message"]

    @pytest.mark.parametrize(("asked", "granted"), [(20, 20), (7_200, 7_200), (1e12, 21_600), (0, 300)])
    def test_it_is_left_alone_for_as_long_as_it_asks_within_reason(self, owner, monkeypatch, asked, granted):
        first, second = sealed(owner, "one", "two")

        run(owner, monkeypatch, unreachable(asked))

        assert rests(first) == pytest.approx(granted, abs=10)
        assert rests(second) == pytest.approx(granted, abs=10)

    def test_the_run_begins_again_by_itself_when_the_rest_is_over(self, owner, monkeypatch):
        sealed(owner, "one", "two")
        run(owner, monkeypatch, unreachable())
        assert trigger_if_due(owner=owner) is None

        Session.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))

        assert trigger_if_due(owner=owner) is not None

    def test_an_operator_need_not_wait(self, owner, monkeypatch):
        sealed(owner, "one", "two")
        run(owner, monkeypatch, unreachable())

        assert retry_failed(owner=owner) == 2

        finished, _ = run(owner, monkeypatch)
        assert finished.counts["sessions"]["distilled"] == 2

    def test_answers_on_their_way_are_kept(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 2
        sealed(owner, "bad", "good", "later")

        finished, distiller = run(owner, monkeypatch, one_lesson, bad=unreachable())

        asked = {content for content, _ in distiller.calls}
        assert asked >= {"bad", "good"}
        assert finished.counts["sessions"]["distilled"] == len(asked) - 1
        assert finished.counts["sessions"]["retry"] == 1


def failing(turns, first_seq):
    return DistillerReply(verdict="retry", error="Status 502.", fault="either", calls=3)


def answered(turns, first_seq):
    return replace(one_lesson(turns, first_seq), calls=1)


def unreadable(turns, first_seq):
    return replace(gibberish(turns, first_seq), calls=1)


class TestAnEndpointThatFailsAtEverySession:
    def test_no_session_is_given_up_for_it(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        sessions = sealed(owner, "one", "two")

        finished, distiller = run(owner, monkeypatch, failing)

        assert len(distiller.calls) == 2
        for session in sessions:
            assert rests(session) == pytest.approx(300, abs=30)
            assert (session.state, session.attempts, session.last_error) == ("sealed", 0, "Status 502.")
        assert [attempt.verdict for attempt in DistillationAttempt.objects.all()] == ["retry", "retry"]
        assert finished.counts["sessions"]["retry"] == 2
        (note,) = finished.notes
        assert note["reason"] == (
            "The model's endpoint failed at 2 sessions and answered about none, so no attempt counts."
        )
        assert note["reason"] in dream_answer(finished)["message"]

    def test_a_pause_that_was_longer_stays(self, owner, monkeypatch):
        (first, _) = sealed(owner, "one", "two")
        Session.objects.update(attempts=3)

        run(owner, monkeypatch, failing)

        assert rests(first) == pytest.approx(64 * 60, abs=30)
        assert first.attempts == 3

    @pytest.mark.parametrize("other", [answered, unreadable])
    def test_where_it_answers_about_another_the_failure_counts(self, owner, monkeypatch, settings, other):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 2
        one, two, _ = sealed(owner, "one", "two", "well")

        finished, _ = run(owner, monkeypatch, failing, well=other)

        for session in (one, two):
            session.refresh_from_db()
            assert (session.state, session.attempts) == ("sealed", 1)
        assert finished.notes == []

    def test_after_some_of_them_no_more_are_asked_about(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        sessions = sealed(owner, *(f"number {number}" for number in range(20)))

        finished, distiller = run(owner, monkeypatch, failing)

        assert len(distiller.calls) == 6
        assert finished.counts["sessions"]["deferred"] == 14
        assert finished.notes[0]["reason"] == (
            "The model's endpoint fails at one session after the other. Status 502."
        )
        for session in sessions:
            session.refresh_from_db()
            assert (session.state, session.attempts) == ("sealed", 0)
        # Should it be these sessions after all, the others come first next time.
        assert {round(rests(session) / 300) for session in sessions[:6]} == {2}
        assert {round(rests(session) / 300) for session in sessions[6:]} == {1}

    def test_sessions_that_are_the_cause_do_not_keep_others_back_for_ever(self, owner, monkeypatch):
        poisoned = sealed(owner, *(f"bad {number}" for number in range(8)))
        good = sealed(owner, "well")
        scripts = {"well": answered}
        run(owner, monkeypatch, failing, **scripts)
        Session.objects.filter(next_attempt_at__lt=timezone.now() + timedelta(seconds=330)).update(
            next_attempt_at=None
        )

        run(owner, monkeypatch, failing, **scripts)

        assert [session.state for session in Session.objects.filter(pk=good[0].pk)] == ["distilled"]
        assert set(Session.objects.filter(pk__in=[one.pk for one in poisoned]).values_list("state")) == {
            ("sealed",)
        }

    def test_one_that_goes_down_in_the_middle_is_found_out_too(self, owner, monkeypatch):
        sealed(owner, "well", *(f"number {number}" for number in range(10)))

        finished, distiller = run(owner, monkeypatch, failing, well=answered)

        assert len(distiller.calls) == 7
        assert set(Session.objects.filter(state="sealed").values_list("attempts")) == {(0,)}
        assert finished.counts["sessions"]["distilled"] == 1

    def test_failures_between_answers_are_the_sessions_own(self, owner, monkeypatch):
        names = [f"number {number}" for number in range(10)]
        sealed(owner, *names)

        _, distiller = run(owner, monkeypatch, failing, **dict.fromkeys(names[::3], answered))

        assert len(distiller.calls) == 10
        assert set(Session.objects.filter(state="sealed").values_list("attempts")) == {(1,)}

    def test_one_session_alone_tells_nothing_of_the_endpoint(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        (session,) = sealed(owner, "one")

        run(owner, monkeypatch, failing)

        session.refresh_from_db()
        assert (session.state, session.attempts) == ("dead", 1)

    def test_a_run_that_is_told_to_stop_holds_it_against_none_either(self, owner, monkeypatch, settings):
        settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
        sessions = sealed(owner, "one", "two", "three")
        distiller = ScriptedDistiller(failing)
        monkeypatch.setattr(dreaming, "get_distiller", lambda model="": distiller)

        with pytest.raises(Stopped):
            dream(
                claim=claim(owner=owner, trigger="command", parameters={}),
                should_stop=lambda: len(distiller.calls) > 1,
            )

        for session in sessions:
            session.refresh_from_db()
            assert (session.state, session.attempts) == ("sealed", 0)


def test_a_failing_session_rests_for_as_long_as_the_endpoint_asked(owner, monkeypatch):
    def overloaded(turns, first_seq):
        return DistillerReply(verdict="retry", error="503", retry_after=600)

    (session,) = sealed(owner, "one")
    run(owner, monkeypatch, overloaded)

    assert rests(session) == pytest.approx(600, abs=30)
    assert session.attempts == 1
