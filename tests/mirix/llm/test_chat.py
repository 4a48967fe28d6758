"""The chat endpoint: what it is asked, how it finds out what a server takes, and how it is shared."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mirix.llm import chat, checks
from mirix.llm.chat import FAILING_SECONDS, GUESSED_SECONDS, KNOWN_SECONDS, ChatFailed, ChatReply, get_chat
from tests.endpoints import ChatAnswer

SCHEMA = {"type": "object", "properties": {"experiences": {"type": "array"}}}
WAYS = ["json_schema", "json_object with schema", "json_object", "plain"]


def ask(user: str = "What is to be learned?", **options) -> ChatReply:
    options = {"system": "You distil.", "schema": SCHEMA, "schema_name": "lessons"} | options
    return get_chat().complete(user=user, **options)


def failure(**options) -> ChatFailed:
    with pytest.raises(ChatFailed) as failed:
        ask(**options)
    return failed.value


@pytest.fixture
def later(monkeypatch):
    """Let time pass."""

    def pass_by(seconds: float) -> None:
        now = time.monotonic()
        monkeypatch.setattr(chat.time, "monotonic", lambda: now + seconds)

    return pass_by


def test_without_a_model_there_is_none_whatever_else_is_set(settings):
    settings.MIRIX_LLM_MODEL = ""
    settings.MIRIX_LLM_BASE_URL = "http://127.0.0.1:9/v1"
    settings.MIRIX_LLM_API_KEY = "sesame"
    assert get_chat() is None
    assert get_chat("another") is None


def test_one_question_gets_one_answer(chat_server):
    chat_server.answer = lambda request: '{"experiences": []}'
    reply = ask()
    assert (reply.text, reply.finish, reply.mode) == ('{"experiences": []}', "stop", "schema")
    assert (reply.prompt_tokens, reply.completion_tokens, reply.calls) == (100, 10, 1)
    assert '"finish_reason": "stop"' in reply.raw
    (request,) = chat_server.requests
    assert request.body["model"] == "scripted"
    assert request.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "lessons", "schema": SCHEMA},
    }
    assert request.user == "What is to be learned?"
    assert request.system.startswith("You distil.")
    assert '{"experiences": {"type": "array"}}' in request.system
    assert request.body.keys() == {"model", "messages", "response_format"}


def test_the_override_names_another_model_at_the_same_address(chat_server, settings):
    settings.MIRIX_LLM_API_KEY = "sesame"
    other = get_chat("other")
    assert other.model == "other"
    assert other.complete(system="", user="", schema={}, schema_name="lessons").calls == 1
    (request,) = chat_server.requests
    assert request.body["model"] == "other"
    assert request.headers["authorization"] == "Bearer sesame"
    assert "sesame" not in repr(other.config)


def test_text_that_no_request_can_carry_is_cleaned(chat_server):
    assert ask("a lone \ud800, a \x00").calls == 1
    assert chat_server.requests[0].user == "a lone \ufffd, a "


class TestSchema:
    @pytest.mark.parametrize("status", [400, 415, 422, 500, 501])
    @pytest.mark.parametrize("refused", [0, 1, 2, 3])
    def test_what_a_server_does_not_take_is_found_out_once(self, chat_server, refused, status):
        chat_server.refused = dict.fromkeys(WAYS[:refused], status)
        replies = [ask() for _ in range(3)]
        assert [reply.calls for reply in replies] == [refused + 1, 1, 1]
        assert chat_server.formats == [*WAYS[: refused + 1], WAYS[refused], WAYS[refused]]
        assert {reply.mode for reply in replies} == {("schema", "json", "json", "plain")[refused]}
        assert chat_server.pauses == []

    def test_json_mode_carries_the_schema_where_a_server_takes_it_so(self, chat_server):
        chat_server.refused = {"json_schema": 500}
        ask()
        assert chat_server.requests[-1].body["response_format"] == {"type": "json_object", "schema": SCHEMA}

    def test_a_server_may_refuse_under_status_200(self, chat_server):
        refusal = ChatAnswer(body=b'{"error": "response_format must be text"}')
        chat_server.answer = lambda request: "[]" if request.format == "plain" else refusal
        assert [(reply.mode, reply.calls) for reply in (ask(), ask())] == [("plain", 4), ("plain", 1)]

    def test_a_server_that_overlooks_it_answers_all_the_same(self, chat_server):
        chat_server.answer = lambda request: "no JSON at all"
        assert (ask().text, ask().mode) == ("no JSON at all", "schema")
        assert chat_server.calls == 2

    @pytest.mark.parametrize(("status", "seconds"), [(400, KNOWN_SECONDS), (500, GUESSED_SECONDS)])
    def test_it_is_tried_again_after_a_while(self, chat_server, later, status, seconds):
        chat_server.refused = {"json_schema": status}
        ask()
        chat_server.refused = {}
        later(seconds - 5)
        assert ask().mode == "json"
        later(seconds + 5)
        assert ask().mode == "schema"
        assert chat_server.calls == 4

    def test_each_schema_is_found_out_about_for_itself(self, chat_server):
        chat_server.answer = lambda request: (
            ChatAnswer(status=400)
            if request.format == "json_schema"
            and request.body["response_format"]["json_schema"]["name"] == "odd"
            else "[]"
        )
        assert [ask(schema_name=name).mode for name in ("odd", "even", "odd")] == ["json", "schema", "json"]
        assert chat_server.calls == 4

    def test_a_question_that_is_refused_in_every_way_costs_one_request_for_each(self, chat_server):
        chat_server.answer = lambda request: ChatAnswer(status=400)
        failed = failure()
        assert (failed.reason, failed.fault, failed.calls) == (
            "the endpoint answered with status 400",
            "session",
            4,
        )
        assert chat_server.formats == WAYS

    def test_one_refused_question_does_not_change_how_the_others_are_asked(self, chat_server):
        chat_server.refused = {"json_schema": 400}
        ask()
        chat_server.answer = lambda request: (
            ChatAnswer(status=400) if request.user == "poison" else ChatAnswer()
        )
        assert failure(user="poison").calls == 1
        assert [ask().calls, ask().calls] == [2, 1]  # the first has found out again
        assert ask().mode == "json"

    def test_a_question_that_is_too_long_is_not_asked_in_other_ways(self, chat_server):
        body = b'{"error": {"code": "context_length_exceeded", "message": "This model\'s maximum..."}}'
        chat_server.answer = lambda request: ChatAnswer(status=400, body=body)
        assert (failure().calls, chat_server.calls) == (1, 1)

    def test_several_threads_find_out_at_the_same_time(self, chat_server):
        chat_server.refused = {"json_schema": 400}
        chat_server.answer = lambda request: ChatAnswer(slow=0.05)
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda number: ask(str(number)), range(12)))
        assert {reply.mode for reply in replies} == {"json"}
        assert 13 <= chat_server.calls == sum(reply.calls for reply in replies) <= 16

    def test_only_one_of_several_threads_tries_the_other_ways(self, chat_server):
        begun = threading.Barrier(4)

        def answer(request):
            if request.format == "json_schema":
                begun.wait(10)
                return ChatAnswer(status=500)
            return ChatAnswer(status=500) if request.format == "json_object with schema" else "[]"

        chat_server.answer = answer
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda number: ask(str(number)), range(4)))
        assert sorted(reply.calls for reply in replies) == [2, 2, 2, 3]
        assert chat_server.formats.count("json_object with schema") == 1


class TestAnEndpointThatFailsInEveryWay:
    @pytest.fixture(autouse=True)
    def failing(self, chat_server):
        chat_server.answer = lambda request: ChatAnswer(status=500)

    def test_the_next_questions_cost_one_request_each(self, chat_server):
        assert [failure().calls for _ in range(4)] == [4, 1, 1, 1]
        assert chat_server.formats == [*WAYS, "plain", "plain", "plain"]
        assert chat_server.pauses == []

    def test_questions_of_several_threads_go_through_the_ways_once(self, chat_server):
        begun = threading.Barrier(4)

        def answer(request):
            if request.format == "json_schema":
                begun.wait(10)
            return ChatAnswer(status=500)

        chat_server.answer = answer
        with ThreadPoolExecutor(4) as pool:
            calls = list(pool.map(lambda number: failure(user=str(number)).calls, range(4)))
        assert sorted(calls) == [1, 1, 1, 4]

    def test_once_it_answers_it_is_found_out_again_what_it_takes(self, chat_server):
        failure()
        chat_server.answer = lambda request: "[]"
        chat_server.refused = {"json_schema": 500}
        assert [(reply.mode, reply.calls) for reply in (ask(), ask(), ask())] == [
            ("plain", 1),
            ("json", 2),
            ("json", 1),
        ]

    def test_after_a_while_all_ways_are_tried_again(self, chat_server, later):
        failure()
        later(FAILING_SECONDS - 5)
        assert failure().calls == 1
        later(FAILING_SECONDS + 5)
        assert failure().calls == 4

    def test_a_refusal_among_the_failures_is_of_the_question(self, chat_server):
        chat_server.refused = {"plain": 400}
        assert [failure().calls, failure().calls] == [4, 4]


class TestLimit:
    def test_it_goes_by_the_name_that_the_server_wants(self, chat_server):
        def answer(request):
            if "max_tokens" in request.body:
                body = b'{"error": {"message": "Unsupported \'max_tokens\', use \'max_completion_tokens\'"}}'
                return ChatAnswer(status=400, body=body)
            return "[]"

        chat_server.answer = answer
        assert [ask(max_tokens=50).calls, ask(max_tokens=60).calls] == [2, 1]
        assert [request.body.get("max_completion_tokens") for request in chat_server.requests] == [
            None,
            50,
            60,
        ]
        assert set(chat_server.formats) == {"json_schema"}

    def test_it_is_max_tokens_at_first(self, chat_server):
        ask(max_tokens=50)
        assert chat_server.requests[0].body["max_tokens"] == 50


class TestSharing:
    def test_there_is_one_for_a_process_and_its_settings(self, chat_server, settings):
        assert get_chat() is get_chat() is get_chat("scripted")
        first = get_chat()
        settings.MIRIX_LLM_TIMEOUT_SECONDS = 11.0
        assert get_chat() is not first

    def test_threads_share_its_connections(self, chat_server):
        barrier = threading.Barrier(8, timeout=10)

        def answer(request):
            if request.number <= 8:
                barrier.wait()
            return request.user

        chat_server.answer = answer
        with ThreadPoolExecutor(8) as pool:
            texts = list(pool.map(lambda number: ask(str(number)).text, range(40)))
        assert texts == [str(number) for number in range(40)]
        assert chat_server.most_at_once == 8
        assert chat_server.connections == 8
        assert chat_server.calls == 40

    def test_a_forked_process_speaks_in_connections_of_its_own(self, chat_server):
        chat_server.answer = lambda request: request.user
        assert ask("parent").text == "parent"
        lock = get_chat()._lock
        lock.acquire()  # as if another thread was just connecting
        try:
            if not (child := os.fork()):
                os._exit(0 if ask("child").text == "child" else 1)
        finally:
            lock.release()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert ask("parent again").text == "parent again"
        assert chat_server.connections == 2
        assert chat_server.calls == 3

    def test_after_it_was_closed_it_connects_anew(self, chat_server):
        ask()
        get_chat().close()
        assert ask().calls == 1
        assert chat_server.connections == 2

    def test_the_client_is_imported_only_when_it_is_asked(self):
        code = "import mirix.llm.chat, sys; sys.exit('openai' in sys.modules or 'httpx2' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestChecks:
    @pytest.mark.parametrize(
        ("model", "url", "key", "found"),
        [
            ("", "", "", []),
            ("m", "http://127.0.0.1:9", "", []),
            ("m", "", "sesame", []),
            ("m", "", "", [checks.LLM_KEY_MISSING]),
            ("", "http://127.0.0.1:9", "", [checks.LLM_MODEL_MISSING]),
            ("", "", "sesame", []),
        ],
    )
    def test_an_endpoint_that_cannot_work_is_named(self, settings, model, url, key, found):
        settings.MIRIX_LLM_MODEL = model
        settings.MIRIX_LLM_BASE_URL = url
        settings.MIRIX_LLM_API_KEY = key
        assert [message.id for message in checks.check_chat_endpoint()] == found
