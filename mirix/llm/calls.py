"""One call of a chat endpoint: what a request is, what its outcome means, and when it is tried again."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mirix.llm.answers import Answer, Finish, Unreadable, read_answer, retry_after
from mirix.text import clean_text

if TYPE_CHECKING:
    from openai import OpenAI

    from mirix.llm.wire import Outcome

Fault = Literal["session", "endpoint", "either"]
Mode = Literal["schema", "json", "plain"]

FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 20.0
"""How long a call waits between two tries; an endpoint that asks for more is left alone instead."""
MAX_RETRY_AFTER_SECONDS = 86_400.0

CHECK_MODEL = "check MIRIX_LLM_MODEL or the model asked for instead"
WORDS = dict.fromkeys((301, 302, 303, 307, 308), ", it points elsewhere") | {
    401: ", the key is not accepted",
    402: ", it wants to be paid",
    403: ", the key may not",
    404: f", unknown model or address: {CHECK_MODEL}, and MIRIX_LLM_BASE_URL",
    405: ", unknown address",
    413: ", the question is too long",
    429: ", too many requests",
}
ENDPOINTS_FAULT = frozenset({401, 402, 403, 404, 405, 429})
BUSY = frozenset({503, 529})
"""The fault of the endpoint as well, where it says when to come back."""
PASSING = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 415, 422})
"""What servers answer to a `response_format` that they do not know."""
FAILED = frozenset({500, 501})
"""What some answer to it instead."""
UNCOUNTED = frozenset({"late", "broken", "endless"})
"""The model may have been at work on it all the same."""
TOO_LONG = re.compile(rb"context.{0,10}(length|window|size)|too (long|large|many)", re.IGNORECASE)
NO_SUCH_MODEL = re.compile(
    rb"""model_?not_?found | not\ a\ valid\ model | (unknown|invalid|no\ such)\ model\b(?!\ param)
    | model\b.{0,150}?\b((is\ |was\ )?not\ (found|exist|a\ valid|available)|does\ not\ exist)""",
    re.IGNORECASE | re.VERBOSE,
)
"""What some answer by 400 or 422 to a model's name, while others say 404; it says nothing of a format."""
OLD_LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"

pause = time.sleep
"""Waits between two tries."""


class ChatFailed(Exception):
    """The endpoint gave no answer that can be read; the message says why, for operators.

    `fault` is `endpoint` where no other question would fare better now, `session` where the endpoint is well
    and this one is the cause, and `either` where it takes other questions to tell. `retry_after` is in
    seconds, None where the endpoint asked for none. `raw` is the body of the last answer, if any, and the
    tokens are those that it counted. `uncounted` is how many requests may have cost tokens that no answer
    counts: those that were late or broken off, and those whose answer cannot be read.
    """

    def __init__(
        self,
        reason: str,
        *,
        fault: Fault,
        retry_after: float | None = None,
        calls: int = 0,
        raw: str = "",
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        uncounted: int = 0,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fault: Fault = fault
        self.retry_after = retry_after
        self.calls = calls
        self.raw = raw
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens
        self.uncounted = uncounted


@dataclass(frozen=True, kw_only=True)
class ChatReply:
    """What a model answered."""

    text: str
    """The content without the model's thinking; the arguments of a tool call where it answered by one."""
    raw: str
    """The body of the answer."""
    finish: Finish
    prompt_tokens: int
    """0 where the server counts none, like `completion_tokens`."""
    completion_tokens: int
    calls: int
    """Requests that were sent."""
    mode: Mode
    """How JSON was asked for: by the schema, as JSON, or in words alone."""
    uncounted: int = 0
    """Of the requests before, those that may have cost tokens that no answer counts."""


@dataclass(frozen=True, kw_only=True)
class ChatConfig:
    """Where an endpoint is, and how patiently it is asked."""

    model: str
    base_url: str
    api_key: str = field(repr=False)
    timeout: float
    """Seconds that one try may take."""
    max_retries: int


@dataclass(frozen=True)
class Way:
    """One way to ask for JSON."""

    mode: Mode
    kind: str = ""
    has_schema: bool = False

    def options(self, schema: dict[str, Any], name: str) -> dict[str, Any]:
        """Return what it adds to a request."""
        if not self.kind:
            return {}
        wanted: dict[str, Any] = {"type": self.kind}
        if self.kind == "json_schema":
            wanted["json_schema"] = {"name": name, "schema": schema}
        elif self.has_schema:
            wanted["schema"] = schema
        return {"response_format": wanted}


class Refused(Exception):
    """The endpoint refused a question by a status that may mean the way in which it was asked."""

    def __init__(self, failure: ChatFailed, status: int, body: bytes) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.status = status
        self.may_be_way = not TOO_LONG.search(body)


@dataclass(frozen=True)
class _Problem:
    """Why a request gave no answer; `status` is 0 where it was none."""

    failure: ChatFailed
    status: int = 0
    is_passing: bool = False
    """Whether it may be gone at the next try."""


@dataclass(kw_only=True)
class Call:
    """A question and its tries; counts them over all ways."""

    config: ChatConfig
    connected: Callable[[], OpenAI]
    request: dict[str, Any]
    """All but `response_format`."""
    schema: dict[str, Any]
    schema_name: str
    sent: int = 0
    retried: int = 0
    uncounted: int = 0

    def ask(self, way: Way, *, is_trial: bool = False) -> ChatReply:
        """Ask in one way, again where that may help; in a trial what may mean the way is asked once.

        Raises `Refused` and `ChatFailed`.
        """
        from mirix.llm.wire import send

        while True:
            asked = self.request | way.options(self.schema, self.schema_name)
            outcome = send(self.connected(), asked, timeout=self.config.timeout)
            self.sent += outcome.was_sent
            self.uncounted += outcome.was_sent and outcome.kind in UNCOUNTED
            judged = self._judge(outcome)
            if isinstance(judged, Answer):
                return self._reply(judged, outcome, way)
            if judged.status in REFUSED and self._renamed_limit(outcome.body):
                continue
            may_be_way = judged.status in REFUSED | FAILED
            is_final = not judged.is_passing or (is_trial and may_be_way)
            if not is_final and self._may_retry(judged.failure):
                continue
            if may_be_way:
                raise Refused(judged.failure, judged.status, outcome.body)
            raise judged.failure

    def _reply(self, answer: Answer, outcome: Outcome, way: Way) -> ChatReply:
        return ChatReply(
            text=clean_text(answer.text),
            raw=self._raw(outcome),
            finish=answer.finish,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            calls=self.sent,
            mode=way.mode,
            uncounted=self.uncounted,
        )

    def _judge(self, outcome: Outcome) -> Answer | _Problem:
        match outcome.kind:
            case "answer":
                return self._read(outcome)
            case "status":
                return self._judge_status(outcome, "status", outcome.status)
            case "unreachable":
                return self._problem("the endpoint cannot be reached", fault="endpoint", is_passing=True)
            case "late":
                reason = f"the endpoint gave no answer within {self.config.timeout:g} s"
                return self._problem(reason, fault="either", is_passing=True)
            case "broken":
                return self._problem("the endpoint broke off", outcome, fault="either", is_passing=True)
            case "endless":
                return self._problem("the endpoint's answer is longer than 10 MB")
        return self._problem("the endpoint cannot be asked: check its address and key", fault="endpoint")

    def _read(self, outcome: Outcome) -> Answer | _Problem:
        try:
            return read_answer(outcome.body)
        except Unreadable as error:
            if error.status:
                return self._judge_status(outcome, "error", error.status)
            self.uncounted += not error.prompt_tokens
            problem = self._problem(error.reason, outcome)
            problem.failure.prompt_tokens = error.prompt_tokens
            problem.failure.completion_tokens = error.completion_tokens
            return problem

    def _judge_status(self, outcome: Outcome, word: str, status: int) -> _Problem:
        says_unknown = status in REFUSED and _names_unknown_model(outcome.body)
        hint = f", unknown model: {CHECK_MODEL}" if says_unknown else WORDS.get(status, "")
        problem = self._problem(
            f"the endpoint answered with {word} {status}{hint}",
            outcome,
            # Where the model's name is what it refuses, no other way to ask helps.
            status=0 if says_unknown else status,
            is_passing=status in PASSING or status >= 500,
        )
        is_busy = status in BUSY and problem.failure.retry_after is not None
        if status in ENDPOINTS_FAULT or status < 400 or is_busy or says_unknown:
            problem.failure.fault = "endpoint"
        elif status >= 500:
            problem.failure.fault = "either"
        return problem

    def _problem(
        self,
        reason: str,
        outcome: Outcome | None = None,
        *,
        fault: Fault = "session",
        status: int = 0,
        is_passing: bool = False,
    ) -> _Problem:
        wait = retry_after(outcome.headers) if outcome else None
        failure = ChatFailed(
            reason,
            fault=fault,
            retry_after=None if wait is None else min(wait, MAX_RETRY_AFTER_SECONDS),
            calls=self.sent,
            raw=self._raw(outcome) if outcome else "",
            uncounted=self.uncounted,
        )
        return _Problem(failure, status, is_passing)

    def _may_retry(self, failure: ChatFailed) -> bool:
        """Wait before the next try, as long as the endpoint asked for; False where there is none."""
        wait = failure.retry_after
        if self.retried >= self.config.max_retries or (wait or 0) > MAX_PAUSE_SECONDS:
            return False
        if wait is None:
            # Not all threads at the same moment.
            wait = FIRST_PAUSE_SECONDS * 2**self.retried * random.uniform(0.75, 1.0)  # noqa: S311
        self.retried += 1
        pause(min(wait, MAX_PAUSE_SECONDS))
        return True

    def _renamed_limit(self, body: bytes) -> bool:
        """Name the limit of tokens as the endpoint wants it, where the old name is what it refuses."""
        if OLD_LIMIT not in self.request or NEW_LIMIT.encode() not in body:
            return False
        self.request[NEW_LIMIT] = self.request.pop(OLD_LIMIT)
        return True

    def _raw(self, outcome: Outcome) -> str:
        """Return the body as text; a server that quotes the key back does not bring it into the database."""
        text = clean_text(outcome.body.decode(errors="replace"))
        return text.replace(self.config.api_key, "[key]") if self.config.api_key else text


def _names_unknown_model(body: bytes) -> bool:
    return bool(NO_SUCH_MODEL.search(body)) and b"response_format" not in body and b"schema" not in body
