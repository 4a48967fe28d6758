"""Runs while they go on, and attempts with what was answered, dropped and spent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from conversations.models import Session
from mirix.tenants.models import AuditEvent
from skills.models import AutoDreamRun, DistillationAttempt
from tests.factories import make_attempt, make_experience, make_member, make_run, make_session
from tests.skills.admin.conftest import as_user

pytestmark = pytest.mark.django_db
TURNS = [{"role": "user", "content": "No, the other one."}]
HOSTILE = "</pre><script>alert(1)</script>{{ 7 }}\u202egnp.exe"
ESCAPED = "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{ 7 }}"


def page(row: AutoDreamRun | DistillationAttempt) -> str:
    return reverse(f"admin:skills_{row._meta.model_name}_change", args=[row.pk])


def reply(attempt: DistillationAttempt) -> str:
    return reverse("admin:skills_distillationattempt_reply", args=[attempt.pk])


def live(run: AutoDreamRun) -> str:
    return reverse("admin:skills_autodreamrun_live", args=[run.pk])


def text(answer) -> str:
    assert answer.status_code == 200
    return answer.content.decode()


class TestRuns:
    def test_one_that_goes_on_shows_how_far_it_is_and_asks_for_more(self, owner, reviewer):
        parameters = {"last_n_sessions": 3}
        run = make_run(owner, state="running", heartbeat_at=timezone.now(), parameters=parameters)
        make_attempt(
            run, make_session(owner, TURNS, state="distilled", distilled_through=1), prompt_tokens=42
        )
        for _ in range(4):
            make_session(owner, TURNS)

        shown = text(reviewer.get(page(run)))

        assert "1 of 3 sessions read" in shown
        assert 'max="3" value="1"' in shown
        assert f'data-live="{live(run)}" data-every="3"' in shown
        assert f'href="{page(run)}">Refresh</a>' in shown
        assert "<dt>Tokens</dt><dd>42</dd>" in shown
        assert "Last sign of life just now" in shown
        assert "no sign of life" not in shown

    def test_one_whose_process_is_silent_says_so(self, owner, reviewer):
        run = make_run(owner, state="running", heartbeat_at=timezone.now() - timedelta(hours=1))
        assert "Its process gave no sign of life for too long." in text(reviewer.get(page(run)))

    def test_one_that_waits(self, owner, reviewer):
        shown = text(reviewer.get(page(make_run(owner, state="queued"))))
        assert "Waits for a worker." in shown
        assert "data-live" in shown

    def test_one_that_is_over_stands_still(self, owner, reviewer):
        notes = [
            {"reason": "The day's tokens are used up.", "deferred": 2, "until": "2026-12-03T00:00:00+00:00"},
            {"reason": "It would be a near-duplicate.", "name": "pay-order", "experience_ids": ["sexp-1"]},
        ]
        run = make_run(owner, counts={"experiences": 2}, tokens=7, notes=notes)
        attempt = make_attempt(
            run, make_session(owner, TURNS), verdict="retry", error="No JSON: <b>", calls=3, dropped=[{}, {}]
        )

        shown = text(reviewer.get(page(run)))

        assert "data-live" not in shown
        assert "live.js" not in shown
        assert "2 sessions rest until 2026-12-03T00:00:00+00:00." in shown
        assert '<span class="mx-strong">pay-order</span> It would be a near-duplicate.' in shown
        assert "No JSON: &lt;b&gt;" in shown
        assert f'<td class="mx-number">{attempt.calls}</td>' in shown
        assert '<td class="mx-number">2</td>' in shown

    def test_what_has_not_changed_is_not_sent_again(self, owner, reviewer):
        run = make_run(owner, state="running", heartbeat_at=timezone.now())
        make_attempt(run, make_session(owner, TURNS), verdict="retry", error=HOSTILE)
        first = reviewer.get(live(run))
        assert first["X-Run-State"] == "open"
        assert ESCAPED in text(first)
        assert "<html" not in text(first)
        same = reviewer.get(live(run), headers={"If-None-Match": first["ETag"]})
        assert (same.status_code, same.content, same["X-Run-State"]) == (304, b"", "open")

        AutoDreamRun.objects.filter(pk=run.pk).update(state="finished", finished_at=timezone.now())
        ended = reviewer.get(live(run), headers={"If-None-Match": first["ETag"]})
        assert ended["X-Run-State"] == "over"
        assert ended["ETag"] != first["ETag"]
        assert "Finished" in text(ended)

    def test_of_a_strangers_run_nothing_is_told(self, owner, stranger):
        run = make_run(owner, state="running", heartbeat_at=timezone.now())
        foreign = as_user(make_member(stranger.organization)).get(live(run))
        assert foreign.status_code == 404
        assert run.pk not in foreign.content.decode()

    @pytest.mark.parametrize("state", ["running", "finished"])
    def test_its_page_reads_no_reply_and_costs_the_same_with_more_rows(self, owner, reviewer, state):
        parameters = {"last_n_sessions": 100}
        run = make_run(owner, state=state, heartbeat_at=timezone.now(), parameters=parameters)

        def queries() -> list[str]:
            with CaptureQueriesContext(connection) as captured:
                text(reviewer.get(page(run)))
            return [query["sql"] for query in captured]

        make_attempt(run, make_session(owner, TURNS), raw_reply="x" * 1_000)
        queries()
        one = queries()
        for _ in range(19):
            make_attempt(run, make_session(owner, TURNS), raw_reply="x" * 1_000)
        assert len(queries()) == len(one)
        assert not [sql for sql in one if "raw_reply" in sql]


class TestAttempts:
    @pytest.fixture
    def attempt(self, owner) -> DistillationAttempt:
        return make_attempt(
            make_run(owner),
            make_session(owner, TURNS, session_id="s-1"),
            distiller="llm",
            model="m-1",
            prompt_version="1-abc",
            calls=2,
            prompt_tokens=900,
            completion_tokens=30,
            duration_ms=12_340,
            raw_reply=HOSTILE,
            error=HOSTILE,
            dropped=[{"reason": f"No type: {HOSTILE}", "text": HOSTILE}],
            flags=["closing_fence", "one of tomorrow"],
        )

    def test_the_list_is_filtered_by_distiller(self, owner, reviewer, attempt):
        other = make_attempt(attempt.run, make_session(owner, TURNS), distiller="offline")
        list_ = reverse("admin:skills_distillationattempt_changelist")
        for query, expected in (("llm", {attempt.pk}), ("offline", {other.pk}), ("", {attempt.pk, other.pk})):
            rows = reviewer.get(list_, {"distiller": query}).context["cl"].result_list
            assert {row.pk for row in rows} == expected

    def test_it_shows_all_that_is_kept_of_it_as_text(self, owner, reviewer, attempt):
        make_experience(owner, attempt.session, attempt=attempt, title="Held", quarantined=True)

        shown = text(reviewer.get(page(attempt)))

        assert shown.count(ESCAPED) == 4
        assert "<script>alert" not in shown
        assert "\u202e" not in shown
        assert "Text that looks like the end of the transcript" in shown
        assert "one of tomorrow" in shown
        assert "1 dropped" in shown
        for name, value in {
            "Requests": "2",
            "Prompt tokens": "900",
            "Reply tokens": "30",
            "Took": "12.3 s",
            "Distiller": "llm",
            "Prompt": "1-abc",
        }.items():
            assert f"<dt>{name}</dt><dd>{value}</dd>" in shown
        assert '<dd class="mx-mono">m-1</dd>' in shown
        assert "Held</a> " in shown

    def test_the_list_says_what_was_dropped_and_what_to_watch(self, reviewer, attempt):
        shown = text(reviewer.get("/admin/skills/distillationattempt/"))
        assert "s-1" in shown
        assert 'title="Text that looks like the end of the transcript; one of tomorrow">2</span>' in shown
        assert "12.3 s" in shown
        assert "alert(1)" not in shown

    def test_the_whole_reply_is_a_file_that_is_no_page(self, reviewer, attempt):
        answer = reviewer.get(reply(attempt))
        assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
        assert answer["Content-Disposition"] == f'attachment; filename="{attempt.pk}.txt"'
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer.content.decode() == HOSTILE

    def test_a_very_long_one_is_shown_in_part(self, owner, reviewer):
        long = "a" * 100_000 + "b" * 9_900_000 + "the end"
        attempt = make_attempt(make_run(owner), make_session(owner), raw_reply=long)
        answer = reviewer.get(page(attempt))
        assert b"9900007 characters in between are not shown" in answer.content
        assert b"the end" in answer.content
        assert len(answer.content) < 200_000
        assert len(reviewer.get(reply(attempt)).content) == len(long)

    def test_without_a_reply_there_is_no_file(self, owner, reviewer):
        attempt = make_attempt(make_run(owner), make_session(owner))
        assert "As a file" not in text(reviewer.get(page(attempt)))
        assert reviewer.get(reply(attempt)).status_code == 404

    def test_a_stranger_gets_no_file(self, stranger, attempt):
        elsewhere = as_user(make_member(stranger.organization, "administrator"))
        foreign = elsewhere.get(reply(attempt))
        missing = elsewhere.get(reply(DistillationAttempt(pk="attempt-none")))
        assert (foreign.status_code, foreign.content) == (404, missing.content)


class TestLearningNow:
    def learn(self, browser: Browser, session: Session):
        return browser.post(reverse("admin:conversations_session_learn", args=[session.pk]))

    def test_an_operator_starts_a_run_of_the_end_user_once(self, owner):
        operator = as_user(make_member(owner.organization, "operator", username="otto"))
        session = make_session(owner, TURNS)
        assert "Learn now" in text(operator.get(session_page(session)))

        answers = [self.learn(operator, session) for _ in range(2)]

        run = AutoDreamRun.objects.get()
        assert (run.trigger, run.state, run.end_user) == ("admin", "queued", owner.end_user)
        assert ProcrastinateJob.objects.get(task_name="skills.run_dream").args == {"run_id": run.pk}
        assert [answer.url for answer in answers] == [page(run)] * 2
        assert [str(note) for answer in answers for note in get_messages(answer.wsgi_request)][-1:] == [
            "This run goes on already."
        ]
        event = AuditEvent.objects.get()
        assert (event.action, event.target_id, event.actor_name) == ("run.started", run.pk, "otto")

    def test_nobody_else_does(self, owner, stranger, reviewer):
        session = make_session(owner, TURNS)
        foreign = as_user(make_member(stranger.organization, "administrator"))
        assert (self.learn(reviewer, session).status_code, self.learn(foreign, session).status_code) == (
            403,
            404,
        )
        assert "Learn now" not in text(reviewer.get(session_page(session)))
        assert not AutoDreamRun.objects.exists()

    @pytest.mark.parametrize("fields", [{"state": "open"}, {"state": "distilled"}, {"tag": "conversation"}])
    def test_it_is_offered_where_there_is_something_to_learn_from(self, owner, fields):
        operator = as_user(make_member(owner.organization, "operator"))
        assert "Learn now" not in text(operator.get(session_page(make_session(owner, TURNS, **fields))))


def session_page(session: Session) -> str:
    return reverse("admin:conversations_session_change", args=[session.pk])
