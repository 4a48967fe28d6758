"""One run with a model behind a scripted endpoint: whatever that does, a verdict, the rows and the calls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.utils import timezone

from conversations.models import Session
from mirix.tenants.owners import Owner
from skills.answers import dream_answer
from skills.distillation.prompt import prompt_version
from skills.dream import dream
from skills.models import AutoDreamRun, DistillationAttempt, SkillExperience
from skills.resting import retry_failed
from skills.runs import claim
from tests.endpoints import ChatAnswer
from tests.factories import make_session
from tests.skills.distillation.answers import answer, told

pytestmark = pytest.mark.django_db

ERROR = "Error: reason is required"
ONE = answer(told(2, ERROR))


@pytest.fixture
def session(owner) -> Session:
    return make_session(
        owner,
        [
            {"role": "user", "content": "Please cancel my order 17."},
            {"role": "tool", "content": ERROR, "tool_name": "cancel_order"},
        ],
    )


def run(owner: Owner, **parameters: Any) -> AutoDreamRun:
    return dream(claim=claim(owner=owner, trigger="command", parameters=parameters), evolving=False)


class Ended(NamedTuple):
    """What a session and its attempt look like after a run."""

    verdict: str
    experiences: int
    calls: int
    state: str
    attempts: int


def ended(session: Session) -> Ended:
    session.refresh_from_db()
    attempt = DistillationAttempt.objects.latest("created_at")
    assert attempt.session == session
    assert (attempt.distiller, attempt.prompt_version) == ("llm", prompt_version())
    assert (attempt.first_seq, attempt.last_seq) == (1, 2)
    assert bool(attempt.error) == (attempt.verdict in ("retry", "dead"))
    assert session.last_error == attempt.error
    return Ended(
        attempt.verdict,
        SkillExperience.objects.filter(attempt=attempt).count(),
        attempt.calls,
        session.state,
        session.attempts,
    )


LEARNED = Ended("ok", 1, 1, "distilled", 0)
EMPTY = Ended("empty", 0, 1, "distilled", 0)
AGAIN = Ended("retry", 0, 1, "sealed", 1)
THRICE = Ended("retry", 0, 3, "sealed", 1)
REST = Ended("retry", 0, 1, "sealed", 0)
HUGE = b'{"choices": [{"message": {"content": "' + b"a" * 10_500_000 + b'"}}]}'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(ONE, LEARNED, id="a lesson"),
        pytest.param(f"Here you are:\n```json\n{ONE}\n```", LEARNED, id="a fence and prose"),
        pytest.param(ChatAnswer(text=ONE, slow=0.3), LEARNED, id="a delay"),
        pytest.param(ChatAnswer(text=ONE, content_type="text/html"), LEARNED, id="a wrong content type"),
        pytest.param(
            ChatAnswer(text=ONE[:-1] + ', {"title": "cut', finish="length"), LEARNED, id="a cut reply"
        ),
        pytest.param("[]", EMPTY, id="nothing"),
        pytest.param(ChatAnswer(text=""), AGAIN, id="a blank reply"),
        pytest.param("I did not find anything.", AGAIN, id="prose"),
        pytest.param(ChatAnswer(text=None, message={"refusal": "No."}), AGAIN, id="a refusal"),
        pytest.param(ChatAnswer(text='{"experiences": [{"ti', finish="length"), AGAIN, id="nothing whole"),
        pytest.param(answer({"title": "no type"}), AGAIN, id="no valid item"),
        pytest.param(ChatAnswer(body=b"<html>Bad gateway</html>"), AGAIN, id="a page"),
        pytest.param(ChatAnswer(body=HUGE), AGAIN, id="more than 10 MB"),
        pytest.param(ChatAnswer(closes=True), THRICE, id="closed connections"),
        pytest.param(ChatAnswer(text=ONE, sent=40), THRICE, id="broken off"),
        pytest.param(ChatAnswer(status=500), AGAIN._replace(calls=4), id="errors of the server"),
        pytest.param(ChatAnswer(status=400), AGAIN._replace(calls=4), id="refusals of each request"),
        pytest.param(ChatAnswer(status=401), REST, id="a key that is refused"),
        pytest.param(ChatAnswer(status=404), REST, id="a model that is not there"),
        pytest.param(ChatAnswer(status=429), REST._replace(calls=3), id="too many requests, for long"),
        pytest.param(ChatAnswer(text=ONE, content_type="application/octet-stream"), LEARNED, id="bytes"),
        pytest.param(
            ChatAnswer(body=b"upstream timed out", content_type="text/plain"), AGAIN, id="a line of text"
        ),
        pytest.param(
            ChatAnswer(
                text="",
                message={
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "experiences", "arguments": ONE}}
                    ]
                },
            ),
            LEARNED,
            id="a tool call",
        ),
        pytest.param(ChatAnswer(status=429, headers={"Retry-After": "900"}), REST, id="too many requests"),
    ],
)
def test_each_answer_has_one_verdict(owner, session, chat_server, given, expected):
    chat_server.answer = lambda request: given
    run(owner)
    assert ended(session) == expected
    assert chat_server.calls == expected.calls


def test_what_passes_is_waited_for(owner, session, chat_server):
    bad = iter([ChatAnswer(status=429, headers={"Retry-After": "3"}), ChatAnswer(status=503)])
    chat_server.answer = lambda request: next(bad, ChatAnswer(text=ONE))
    run(owner)
    assert ended(session) == LEARNED._replace(calls=chat_server.calls)
    assert 3.0 in chat_server.pauses


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize(
    "given", [ChatAnswer(text=ONE, drip=0.05), ChatAnswer(text=ONE, slow=5)], ids=["drips", "silent"]
)
def test_an_endpoint_that_takes_its_time_is_left_after_it(
    owner, session, chat_server, settings, given, retries
):
    settings.MIRIX_LLM_TIMEOUT_SECONDS, settings.MIRIX_LLM_MAX_RETRIES = 0.3, retries
    chat_server.answer = lambda request: given
    run(owner)
    assert ended(session) == AGAIN._replace(calls=1 + retries)
    assert chat_server.calls == 1 + retries
    assert DistillationAttempt.objects.get().error == "the endpoint gave no answer within 0.3 s"


@pytest.mark.parametrize("status", [400, 500])
def test_a_server_without_schemas_is_asked_otherwise_and_that_is_remembered(
    owner, session, chat_server, status
):
    chat_server.refused = {"json_schema": status, "json_object with schema": status, "json_object": status}
    chat_server.answer = lambda request: ONE
    run(owner)
    assert ended(session) == LEARNED._replace(calls=4)
    assert chat_server.formats == ["json_schema", "json_object with schema", "json_object", "plain"]

    make_session(owner, [{"role": "user", "content": f"Again: {ERROR}"}])
    run(owner)
    assert chat_server.formats[4:] == ["plain"]


def test_the_rows_hold_what_was_said_and_what_it_cost(owner, session, chat_server):
    chat_server.answer = lambda request: answer(told(2, ERROR), told(2, "", experience_type="unsure"))
    run(owner)
    attempt = DistillationAttempt.objects.get()
    assert (attempt.model, attempt.prompt_tokens, attempt.completion_tokens) == ("scripted", 100, 10)
    assert attempt.raw_reply == answer(told(2, ERROR), told(2, "", experience_type="unsure"))
    (dropped,) = attempt.dropped
    assert dropped["reason"] == "experience_type is none of worth_learning, worth_avoiding"
    assert '"unsure"' in dropped["text"]
    experience = SkillExperience.objects.get()
    assert (experience.attempt, experience.turn_seq, experience.quote) == (attempt, 2, ERROR)
    assert (experience.signal_type, experience.credibility, experience.model_credibility) == (
        "tool_error",
        0.9,
        0.5,
    )
    assert (experience.topic, experience.details) == (
        "tool:cancel_order",
        {"request": "Please cancel my order 17."},
    )


def test_a_session_that_nothing_can_be_made_of_is_given_up_and_its_replies_stay(
    owner, session, chat_server, settings
):
    settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 3
    chat_server.answer = lambda request: f"I do not know, {request.number}."
    for _ in range(5):
        run(owner)
        Session.objects.update(next_attempt_at=None)
    assert ended(session) == Ended("dead", 0, 1, "dead", 3)
    assert chat_server.calls == 3
    rows = DistillationAttempt.objects.order_by("created_at")
    assert [(row.verdict, row.raw_reply) for row in rows] == [
        ("retry", "I do not know, 1."),
        ("retry", "I do not know, 2."),
        ("dead", "I do not know, 3."),
    ]


def test_an_endpoint_that_is_down_is_waited_for_and_nothing_is_done_by_rules_instead(
    owner, session, chat_server, settings
):
    settings.MIRIX_DISTILLER = "auto"
    settings.MIRIX_LLM_BASE_URL = "http://127.0.0.1:9/v1"
    others = [make_session(owner, [{"role": "user", "content": f"Hello {number}"}]) for number in range(5)]
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    run(owner, last_n_sessions=50)
    assert set(DistillationAttempt.objects.values_list("distiller", "verdict")) == {("llm", "retry")}
    assert SkillExperience.objects.count() == 0
    for waiting in Session.objects.filter(pk__in=[session.pk, *(other.pk for other in others)]):
        assert (waiting.state, waiting.attempts) == ("sealed", 0)
        assert waiting.next_attempt_at is not None
        assert waiting.next_attempt_at > timezone.now() + timedelta(minutes=1)


def test_another_model_may_be_asked_for_once(owner, session, chat_server):
    chat_server.answer = lambda request: ONE
    run(owner, model="larger")
    assert [request.body["model"] for request in chat_server.requests] == ["larger"]
    assert DistillationAttempt.objects.get().model == "larger"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b'{"error": {"code": "model_not_found", "message": "no access"}}'),
        (400, b'{"error": "largr is not a valid model ID"}'),
    ],
)
def test_a_model_that_is_not_there_is_held_against_no_session_and_the_run_says_what_to_change(
    owner, session, chat_server, settings, status, body
):
    settings.MIRIX_DISTILLER_MAX_ATTEMPTS = 1
    settings.MIRIX_DISTILLER_MAX_CONCURRENCY = 1
    other = make_session(owner, [{"role": "user", "content": "Hello."}])
    chat_server.answer = lambda request: (
        ChatAnswer(status=status, body=body) if request.body["model"] == "largr" else ChatAnswer()
    )
    finished = run(owner, model="largr")
    assert chat_server.calls == 1
    assert dream_answer(finished)["sessions"] == {
        "distilled": 0, "empty": 0, "retry": 1, "dead": 0, "deferred": 1
    }  # fmt: skip
    assert "unknown model" in dream_answer(finished)["message"]
    assert "check MIRIX_LLM_MODEL or the model asked for instead" in dream_answer(finished)["message"]
    retry_failed(owner=owner)
    run(owner)
    for each in (session, other):
        each.refresh_from_db()
        assert each.state == "distilled"
