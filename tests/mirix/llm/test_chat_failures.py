"""A chat endpoint that misbehaves: for each kind the outcome, whose fault it is, and the number of calls."""

from __future__ import annotations

import gzip
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mirix.llm.calls import FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, MAX_RETRY_AFTER_SECONDS
from mirix.llm.chat import ChatConfig, ChatEndpoint, ChatFailed, ChatReply, get_chat
from mirix.llm.wire import MAX_ANSWER_BYTES, MAX_ERROR_BYTES
from tests.endpoints import ChatAnswer, scripted_chat

SECRET = "the secret plan"


def ask(endpoint: ChatEndpoint | None = None) -> ChatReply:
    return (endpoint or get_chat()).complete(
        system="You distil.", user=SECRET, schema={"type": "array"}, schema_name="lessons"
    )


def failure(endpoint: ChatEndpoint | None = None) -> ChatFailed:
    with pytest.raises(ChatFailed) as failed:
        ask(endpoint)
    assert failed.value.reason == str(failed.value)
    assert SECRET not in failed.value.reason
    return failed.value


def outcome(failed: ChatFailed) -> tuple[str, str, int]:
    return failed.reason, failed.fault, failed.calls


@pytest.fixture
def answers(chat_server):
    """Script the answers in their order; the last one stays. What works is known already."""
    ask()
    chat_server.requests.clear()

    def script(*given: ChatAnswer) -> None:
        chat_server.answer = lambda request: given[min(request.number, len(given)) - 1]

    return script


CHECK_MODEL = "check MIRIX_LLM_MODEL or the model asked for instead"
CHECK_BOTH = f"{CHECK_MODEL}, and MIRIX_LLM_BASE_URL"
GOOD = ChatAnswer(text="good")


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "reason", "fault", "calls"),
        [
            (400, "the endpoint answered with status 400", "session", 1),
            (401, "the endpoint answered with status 401, the key is not accepted", "endpoint", 1),
            (402, "the endpoint answered with status 402, it wants to be paid", "endpoint", 1),
            (403, "the endpoint answered with status 403, the key may not", "endpoint", 1),
            (
                404,
                f"the endpoint answered with status 404, unknown model or address: {CHECK_BOTH}",
                "endpoint",
                1,
            ),
            (408, "the endpoint answered with status 408", "session", 3),
            (413, "the endpoint answered with status 413, the question is too long", "session", 1),
            (429, "the endpoint answered with status 429, too many requests", "endpoint", 3),
            (500, "the endpoint answered with status 500", "either", 3),
            (502, "the endpoint answered with status 502", "either", 3),
            (503, "the endpoint answered with status 503", "either", 3),
            (307, "the endpoint answered with status 307, it points elsewhere", "endpoint", 1),
        ],
    )
    def test_each_has_its_reason_its_fault_and_its_number_of_calls(
        self, chat_server, answers, status, reason, fault, calls
    ):
        answers(ChatAnswer(status=status, body=b"<html>why</html>", content_type="text/html"))
        failed = failure()
        assert outcome(failed) == (reason, fault, calls)
        assert (failed.raw, failed.retry_after) == ("<html>why</html>", None)
        assert chat_server.calls == calls
        assert len(chat_server.pauses) == calls - 1

    @pytest.mark.parametrize(
        "message",
        [
            "gpt-9 is not a valid model ID",
            "Invalid model: gpt-9",
            "The model `gpt-9` does not exist or you do not have access to it.",
            'model "gpt-9" not found, try pulling it first',
            "unknown model gpt-9",
            {"code": "model_not_found", "message": "gpt-9?"},
        ],
    )
    @pytest.mark.parametrize("status", [400, 422])
    def test_a_model_that_it_does_not_know_is_no_fault_of_the_question(
        self, chat_server, answers, status, message
    ):
        answers(ChatAnswer(status=status, body=json.dumps({"error": message}).encode()))
        assert outcome(failure()) == (
            f"the endpoint answered with status {status}, unknown model: {CHECK_MODEL}",
            "endpoint",
            1,
        )

    @pytest.mark.parametrize(
        "message",
        [
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            "This model does not support json_schema: format not found",
            "The model refused: the request is not valid",
            "Invalid model parameter: temperature",
        ],
    )
    def test_what_a_model_does_not_take_is_another_thing(self, chat_server, answers, message):
        answers(ChatAnswer(status=400, body=json.dumps({"error": message}).encode()))
        assert outcome(failure()) == ("the endpoint answered with status 400", "session", 1)

    @pytest.mark.parametrize("status", [408, 429, 500, 503])
    def test_what_passes_costs_one_more_call(self, chat_server, answers, status):
        answers(ChatAnswer(status=status), GOOD)
        reply = ask()
        assert (reply.text, reply.calls) == ("good", 2)
        assert chat_server.calls == 2

    def test_an_endpoint_that_always_fails_is_asked_in_each_way_before_one_is_known(self, chat_server):
        chat_server.answer = lambda request: ChatAnswer(status=500)
        assert outcome(failure()) == ("the endpoint answered with status 500", "either", 4)
        assert chat_server.calls == 4

    def test_each_pause_is_longer_than_the_one_before(self, chat_server, answers, settings):
        settings.MIRIX_LLM_MAX_RETRIES = 8
        answers(ChatAnswer(status=503))
        assert failure().calls == 9
        for number, pause in enumerate(chat_server.pauses):
            longest = min(FIRST_PAUSE_SECONDS * 2**number, MAX_PAUSE_SECONDS)
            assert longest * 0.75 <= pause <= longest

    def test_without_retries_it_is_asked_once(self, chat_server, answers, settings):
        settings.MIRIX_LLM_MAX_RETRIES = 0
        answers(ChatAnswer(status=429))
        assert (failure().calls, chat_server.calls) == (1, 1)

    def test_an_error_under_status_200_counts_as_what_it_says(self, chat_server, answers):
        answers(ChatAnswer(body=b'{"error": {"code": 429, "message": "slow down"}}'))
        assert outcome(failure()) == (
            "the endpoint answered with error 429, too many requests",
            "endpoint",
            3,
        )

    def test_a_key_that_the_server_quotes_back_is_not_passed_on(self, chat_server, settings):
        settings.MIRIX_LLM_API_KEY = "sesame-open"
        chat_server.answer = lambda request: ChatAnswer(status=401, body=b'{"error": "bad key: sesame-open"}')
        assert failure().raw == '{"error": "bad key: [key]"}'

    def test_what_is_asked_does_not_follow_the_endpoint_elsewhere(self, chat_server, answers):
        with scripted_chat() as elsewhere:
            location = {"Location": f"{elsewhere.url}/chat/completions"}
            answers(ChatAnswer(status=307, headers=location))
            assert (failure().fault, chat_server.calls, elsewhere.calls) == ("endpoint", 1, 0)

    def test_of_a_packed_error_only_the_beginning_is_told(self, chat_server, answers):
        packed = {"Content-Encoding": "gzip"}
        answers(ChatAnswer(status=400, body=gzip.compress(b"x" * 9_000_000), headers=packed))
        assert failure().raw == "x" * MAX_ERROR_BYTES

    def test_of_a_long_error_only_the_beginning_is_read(self, chat_server, answers):
        answers(ChatAnswer(status=400, body=b"x" * 3_000_000))
        failed = failure()
        assert outcome(failed) == ("the endpoint answered with status 400", "session", 1)
        assert failed.raw == "x" * MAX_ERROR_BYTES


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"Retry-After": "7"}, 7.0),
            ({"Retry-After": "0"}, 0.0),
            ({"Retry-After": "1.5"}, 1.5),
            ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
        ],
    )
    @pytest.mark.parametrize("status", [429, 503])
    def test_it_is_waited_for(self, chat_server, answers, headers, seconds, status):
        answers(ChatAnswer(status=status, headers=headers), GOOD)
        assert ask().calls == 2
        assert chat_server.pauses == [seconds]

    @pytest.mark.parametrize("status", [429, 503])
    def test_after_the_last_try_it_is_told(self, chat_server, answers, status):
        answers(ChatAnswer(status=status, headers={"Retry-After": "3"}))
        failed = failure()
        assert (failed.fault, failed.calls, failed.retry_after) == ("endpoint", 3, 3.0)
        assert chat_server.pauses == [3.0, 3.0]

    @pytest.mark.parametrize(
        ("value", "told"), [("60", 60.0), ("20.5", 20.5), ("9" * 30, MAX_RETRY_AFTER_SECONDS)]
    )
    def test_a_long_one_is_told_instead_of_waited_for(self, chat_server, answers, value, told):
        answers(ChatAnswer(status=429, headers={"Retry-After": value}), GOOD)
        failed = failure()
        assert (failed.fault, failed.calls, failed.retry_after) == ("endpoint", 1, told)
        assert chat_server.pauses == []

    def test_it_may_be_a_date(self, chat_server, answers):
        soon = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True)
        answers(ChatAnswer(status=429, headers={"Retry-After": soon}))
        assert failure().retry_after == pytest.approx(600, abs=30)

    @pytest.mark.parametrize("value", ["soon", "", "-5", "nan", "inf", "Mon, 99 Foo 2026 99:99:99 GMT"])
    def test_nonsense_means_nothing(self, chat_server, answers, value):
        answers(ChatAnswer(status=429, headers={"Retry-After": value}))
        failed = failure()
        assert (failed.calls, failed.retry_after) == (3, None)


class TestConnection:
    @pytest.mark.parametrize("sent", [None, 0, 10])
    def test_one_that_is_closed_is_opened_again(self, chat_server, answers, sent):
        answers(ChatAnswer(closes=sent is None, sent=sent), GOOD)
        reply = ask()
        assert (reply.text, reply.calls, chat_server.calls) == ("good", 2, 2)

    @pytest.mark.parametrize("sent", [None, 0, 10])
    def test_one_that_is_always_closed_may_be_the_fault_of_either(self, chat_server, answers, sent):
        answers(ChatAnswer(closes=sent is None, sent=sent))
        assert outcome(failure()) == ("the endpoint broke off", "either", 3)
        assert chat_server.calls == 3

    def test_a_dead_endpoint_is_at_fault_and_works_as_soon_as_it_is_back(self, chat_server):
        with scripted_chat() as served:
            pass
        gone = make_endpoint(served.url)
        assert outcome(failure(gone)) == ("the endpoint cannot be reached", "endpoint", 0)
        assert len(chat_server.pauses) == 2

    @pytest.mark.parametrize(
        "url", ["http://no-such-host.invalid/v1", "https://127.0.0.1:{port}/v1", "http://", "ftp://host/v1"]
    )
    def test_an_address_that_leads_nowhere_is_the_fault_of_the_endpoint(self, chat_server, url):
        port = chat_server.url.rpartition(":")[2].partition("/")[0]
        endpoint = make_endpoint(url.replace("{port}", port), max_retries=0)
        failed = failure(endpoint)
        assert (failed.fault, failed.calls) == ("endpoint", 0)
        assert failed.reason.startswith("the endpoint cannot be")

    def test_a_key_that_no_header_can_carry_is_the_fault_of_the_endpoint(self, chat_server, settings):
        settings.MIRIX_LLM_API_KEY = "schlüssel"
        assert outcome(failure()) == (
            "the endpoint cannot be asked: check its address and key",
            "endpoint",
            0,
        )


def make_endpoint(url: str, *, max_retries: int = 2, timeout: float = 10.0) -> ChatEndpoint:
    return ChatEndpoint(
        ChatConfig(model="m", base_url=url, api_key="", timeout=timeout, max_retries=max_retries)
    )


class TestTime:
    @pytest.mark.parametrize(
        "late",
        [
            ChatAnswer(slow=30.0),
            ChatAnswer(drip=0.05),
            ChatAnswer(drip=0.05, drips_head=True),
            ChatAnswer(status=500, drip=0.05, body=b"x" * 1000),
        ],
        ids=["slow", "dripping", "dripping from the head on", "dripping an error"],
    )
    def test_a_late_answer_is_asked_for_again_and_then_given_up(self, chat_server, answers, settings, late):
        settings.MIRIX_LLM_TIMEOUT_SECONDS = 0.3
        settings.MIRIX_LLM_MAX_RETRIES = 1
        ask()  # makes what works known to these settings too
        chat_server.requests.clear()
        answers(late)
        begin = time.monotonic()
        assert outcome(failure()) == ("the endpoint gave no answer within 0.3 s", "either", 2)
        assert 0.5 < time.monotonic() - begin < 3
        assert chat_server.calls == 2

    def test_a_late_answer_may_be_in_time_at_the_next_try(self, chat_server, answers, settings):
        settings.MIRIX_LLM_TIMEOUT_SECONDS = 0.5
        answers(ChatAnswer(slow=30.0), GOOD)
        assert (ask().text, chat_server.calls) == ("good", 2)

    def test_a_slow_answer_within_the_time_is_an_answer(self, chat_server, answers):
        answers(ChatAnswer(text="good", slow=0.2, drip=0.001))
        assert (ask().text, chat_server.calls) == ("good", 1)


class TestAnswer:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            (b"", "the endpoint's answer is not JSON"),
            (b"<html>welcome</html>", "the endpoint's answer is not JSON"),
            (b'{"choices": [', "the endpoint's answer is not JSON"),
            (b"[" * 100_000, "the endpoint's answer is not JSON"),
            (b"\xff\xfe", "the endpoint's answer is not JSON"),
            (b'data: {"choices": []}\n\n', "the endpoint's answer is not JSON"),
            (b"[]", "the endpoint's answer is no object"),
            (b"{}", "the endpoint's answer holds no message"),
            (b'{"choices": []}', "the endpoint's answer holds no message"),
            (b'{"choices": {"0": 1}}', "the endpoint's answer holds no message"),
            (b'{"choices": [null]}', "the endpoint's answer holds no message"),
            (b'{"choices": [{"message": "hi"}]}', "the endpoint's answer holds no message"),
            (b'{"error": "no"}', "the endpoint answered with error 400"),
            (b'{"error": null}', "the endpoint's answer holds no message"),
        ],
    )
    def test_what_is_none_fails_at_once_with_what_was_sent(self, chat_server, answers, body, reason):
        answers(ChatAnswer(body=body, content_type="text/html"))
        failed = failure()
        assert outcome(failed) == (reason, "session", 1)
        assert failed.raw == body.decode(errors="replace")
        assert chat_server.calls == 1

    def test_tokens_of_an_unreadable_answer_are_counted(self, chat_server, answers):
        usage = {"prompt_tokens": 70, "completion_tokens": 7}
        answers(ChatAnswer(body=json.dumps({"choices": [], "usage": usage}).encode()))
        failed = failure()
        assert (failed.prompt_tokens, failed.completion_tokens) == (70, 7)

    @pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/octet-stream", "x"])
    def test_a_good_one_is_read_whatever_type_it_claims(self, chat_server, answers, content_type):
        answers(ChatAnswer(text="good", content_type=content_type))
        assert (ask().text, chat_server.calls) == ("good", 1)

    def test_one_that_is_compressed_is_unpacked(self, chat_server, answers):
        answers(
            ChatAnswer(body=gzip.compress(GOOD.payload("m")), headers={"Content-Encoding": "gzip"}),
        )
        assert ask().text == "good"

    @pytest.mark.parametrize(
        ("answer", "text", "finish"),
        [
            (ChatAnswer(text='[{"title": "cut o', finish="length"), '[{"title": "cut o', "length"),
            (ChatAnswer(text=None, message={"refusal": "I will not."}), "I will not.", "refusal"),
            (ChatAnswer(text="", finish="content_filter"), "", "refusal"),
            (ChatAnswer(text="a", finish=None), "a", "other"),
            (ChatAnswer(text="a", finish="eos"), "a", "other"),
            (ChatAnswer(text=None), "", "stop"),
            (ChatAnswer(text="[]", message={"reasoning_content": "Hm.", "reasoning": "Hm."}), "[]", "stop"),
            (
                ChatAnswer(
                    text=None, message={"content": [{"type": "text", "text": "[1,"}, " 2]", {"x": 1}]}
                ),
                "[1, 2]",
                "stop",
            ),
            (
                ChatAnswer(
                    text=None,
                    finish="tool_calls",
                    message={"tool_calls": [{"function": {"name": "lessons", "arguments": '{"a": 1}'}}]},
                ),
                '{"a": 1}',
                "stop",
            ),
            (
                ChatAnswer(text="", message={"tool_calls": [7, {"function": {"arguments": {"a": 1}}}]}),
                '{"a": 1}',
                "stop",
            ),
            (
                ChatAnswer(text=None, message={"function_call": {"name": "f", "arguments": "{}"}}),
                "{}",
                "stop",
            ),
            (ChatAnswer(text="nul \x00, lone \ud800"), "nul , lone \ufffd", "stop"),
        ],
    )
    def test_its_text_is_what_the_model_says_and_not_what_it_thinks(
        self, chat_server, answers, answer, text, finish
    ):
        answers(answer)
        reply = ask()
        assert (reply.text, reply.finish, reply.calls) == (text, finish, 1)

    @pytest.mark.parametrize(
        "usage",
        [
            None,
            {},
            {"prompt_tokens": None},
            {"prompt_tokens": -1},
            {"prompt_tokens": "9"},
            {"prompt_tokens": 10**12, "completion_tokens": True},
        ],
    )
    def test_tokens_that_are_not_counted_are_none(self, chat_server, answers, usage):
        answers(ChatAnswer(usage=usage))
        reply = ask()
        assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)

    def test_one_of_nearly_ten_megabytes_is_read(self, chat_server, answers):
        text = "x" * (MAX_ANSWER_BYTES - 1000)
        answers(ChatAnswer(text=text))
        assert ask().text == text

    @pytest.mark.parametrize("is_packed", [False, True])
    def test_one_of_more_is_not(self, chat_server, answers, is_packed):
        body = b"x" * (MAX_ANSWER_BYTES + 1)
        answers(
            ChatAnswer(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
            if is_packed
            else ChatAnswer(body=body)
        )
        assert outcome(failure()) == ("the endpoint's answer is longer than 10 MB", "session", 1)
        assert chat_server.calls == 1
