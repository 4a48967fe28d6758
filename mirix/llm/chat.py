"""Chat with any OpenAI-compatible endpoint: one question, one answer that ought to fit a JSON schema.

Servers differ in what they take of a schema: an endpoint is tried from the strictest way down to a plain
question, and it is remembered for a while what worked. What goes wrong is `ChatFailed`, with a short reason
that holds no text of anybody, and with whose fault it is. Neither within a transaction nor in a web request:
one try may take `MIRIX_LLM_TIMEOUT_SECONDS`, and there are several.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
import weakref
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings

from mirix.llm.answers import Answer, Finish, Unreadable, read_answer, retry_after

if TYPE_CHECKING:
    from openai import OpenAI

    from mirix.llm.wire import Outcome

Fault = Literal["session", "endpoint"]
Mode = Literal["schema", "json", "plain"]

PUBLIC_URL = "https://api.openai.com/v1"
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 20.0
"""How long a call waits between two tries; an endpoint that asks for more is left alone instead."""
MAX_RETRY_AFTER_SECONDS = 86_400.0
KNOWN_SECONDS = 3600.0
"""How long it is remembered what an endpoint takes, where it refused the rest."""
GUESSED_SECONDS = 600.0
"""The same where it failed at the rest, for which there may have been another cause."""

ASK = "Answer with one JSON value that fits this JSON Schema, and with nothing else:"

WORDS = {
    401: ", the key is not accepted",
    402: ", it wants to be paid",
    403: ", the key may not",
    404: ", unknown model or address",
    405: ", unknown address",
    413: ", too long for it",
    429: ", too many requests",
}
ENDPOINTS_FAULT = frozenset({401, 402, 403, 404, 405, 429})
RETRIED = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 415, 422})
"""What servers answer to a `response_format` that they do not know; 500 and 501 from some."""
FAILED = frozenset({500, 501})
TOO_LONG = re.compile(rb"context.{0,10}(length|window|size)|too (long|large|many)", re.IGNORECASE)

pause = time.sleep
"""Waits between two tries."""


class ChatFailed(Exception):
    """The endpoint gave no answer that can be read; the message says why, for operators.

    `fault` is `endpoint` where no other question would fare better now, and `session` where this one may be
    the cause. `retry_after` is in seconds, None where the endpoint asked for none. `raw` is the body of the
    last answer, if any. Tokens are those of the last answer.
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
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fault = fault
        self.retry_after = retry_after
        self.calls = calls
        self.raw = raw
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens


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


@dataclass(frozen=True, kw_only=True)
class ChatConfig:
    """Where an endpoint is, and how patiently it is asked."""

    model: str
    base_url: str
    api_key: str
    timeout: float
    """Seconds that one try may take."""
    max_retries: int


@dataclass(frozen=True)
class _Way:
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


WAYS = (
    _Way("schema", "json_schema", has_schema=True),
    _Way("json", "json_object", has_schema=True),
    _Way("json", "json_object"),
    _Way("plain"),
)


class ChatEndpoint:
    """One model behind one endpoint; shared by the threads of a process, which share its connections."""

    def __init__(self, config: ChatConfig) -> None:
        self.config = config
        self.model = config.model
        # Of each schema's name: which way works, and until when that is believed.
        self._known: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._client: OpenAI | None = None
        _endpoints.add(self)

    def complete(
        self,
        *,
        system: str,
        user: str,
        schema: dict[str, Any],
        schema_name: str,
        max_tokens: int | None = None,
    ) -> ChatReply:
        """Return the model's answer to `user`, of at most `max_tokens` tokens.

        `schema_name` consists of letters, digits, `_` and `-`. The schema stands in the text of the system as
        well, for servers that overlook it; an answer that does not fit is an answer all the same. Raises
        `ChatFailed`.
        """
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": f"{system}\n\n{ASK}\n{json.dumps(schema, ensure_ascii=False)}"},
                {"role": "user", "content": user},
            ],
        }
        if max_tokens is not None:
            request["max_tokens"] = max_tokens
        call = _Call(self._connected(), self.config)
        place, until = self._known.get(schema_name, (0, 0.0))
        if time.monotonic() < until:
            try:
                return call.ask(request, WAYS[place], schema, schema_name)
            except _Refused as refused:
                # By this question, or the server is another now: the next call finds out.
                self._known.pop(schema_name, None)
                raise refused.failure from refused
        return self._explore(call, request, schema, schema_name)

    def close(self) -> None:
        """Give up the connections; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _explore(
        self, call: _Call, request: dict[str, Any], schema: dict[str, Any], schema_name: str
    ) -> ChatReply:
        """Ask in one way after the other until one is taken, and remember it."""
        seconds = KNOWN_SECONDS
        for place, way in enumerate(WAYS):
            try:
                reply = call.ask(request, way, schema, schema_name, is_trial=True)
            except _Refused as refused:
                if place + 1 == len(WAYS) or not refused.by_way:
                    raise refused.failure from refused
                if refused.status in FAILED:
                    seconds = GUESSED_SECONDS
            else:
                break
        self._known[schema_name] = (place, time.monotonic() + seconds)
        return reply

    def _connected(self) -> OpenAI:
        with self._lock:
            if self._client is None:
                # It takes a second to import: not before it is needed.
                from mirix.llm.wire import connect

                config = self.config
                self._client = connect(
                    base_url=config.base_url, api_key=config.api_key, timeout=config.timeout
                )
            return self._client

    def _renew(self) -> None:
        """Begin without connections; a forked process must not speak in those of its parent."""
        self._lock = threading.Lock()
        self._client = None


@dataclass(frozen=True)
class _Problem:
    """Why a request gave no answer; `status` is 0 where it was none."""

    failure: ChatFailed
    status: int = 0
    is_passing: bool = False
    """Whether it may be gone at the next try."""


class _Refused(Exception):
    """The endpoint refused a question by a status that may mean the way in which it was asked."""

    def __init__(self, failure: ChatFailed, status: int, body: bytes) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.status = status
        self.by_way = not TOO_LONG.search(body)


class _Call:
    """One call of `complete`: it counts requests and retries over all ways."""

    def __init__(self, client: OpenAI, config: ChatConfig) -> None:
        self._client = client
        self._config = config
        self._sent = 0
        self._retried = 0

    def ask(
        self,
        request: dict[str, Any],
        way: _Way,
        schema: dict[str, Any],
        schema_name: str,
        *,
        is_trial: bool = False,
    ) -> ChatReply:
        """Ask in one way, again where that may help; in a trial what may mean the way is asked once."""
        from mirix.llm.wire import send

        while True:
            outcome = send(self._client, request | way.options(schema, schema_name))
            self._sent += outcome.was_sent
            judged = self._judge(outcome)
            if isinstance(judged, Answer):
                return ChatReply(
                    text=judged.text,
                    raw=self._raw(outcome),
                    finish=judged.finish,
                    prompt_tokens=judged.prompt_tokens,
                    completion_tokens=judged.completion_tokens,
                    calls=self._sent,
                    mode=way.mode,
                )
            failure = judged.failure
            is_doubtful = judged.status in REFUSED | FAILED
            is_final = not judged.is_passing or (is_trial and is_doubtful)
            if is_final or not self._may_retry(failure):
                if is_doubtful:
                    raise _Refused(failure, judged.status, outcome.body)
                raise failure

    def _judge(self, outcome: Outcome) -> Answer | _Problem:
        match outcome.kind:
            case "answer":
                return self._read(outcome)
            case "status":
                return self._judge_status(outcome, outcome.status)
            case "unreachable":
                return _Problem(self._failure("the endpoint cannot be reached", "endpoint"), is_passing=True)
            case "late":
                reason = f"the endpoint gave no answer within {self._config.timeout:g} s"
                return _Problem(self._failure(reason, "session"), is_passing=True)
            case "broken":
                return _Problem(self._failure("the endpoint broke off", "session", outcome), is_passing=True)
            case "endless":
                return _Problem(self._failure("the endpoint's answer is longer than 10 MB", "session"))
        return _Problem(self._failure("the endpoint cannot be asked: check its address", "endpoint"))

    def _read(self, outcome: Outcome) -> Answer | _Problem:
        try:
            return read_answer(outcome.body)
        except Unreadable as error:
            if error.status:
                return self._judge_status(outcome, error.status)
            failure = self._failure(error.reason, "session", outcome)
            failure.prompt_tokens = error.prompt_tokens
            failure.completion_tokens = error.completion_tokens
            return _Problem(failure)

    def _judge_status(self, outcome: Outcome, status: int) -> _Problem:
        failure = self._failure(
            f"the endpoint answered with status {status}{WORDS.get(status, '')}",
            "endpoint" if status in ENDPOINTS_FAULT else "session",
            outcome,
        )
        return _Problem(failure, status, is_passing=status in RETRIED or status >= 500)

    def _failure(self, reason: str, fault: Fault, outcome: Outcome | None = None) -> ChatFailed:
        wait = retry_after(outcome.headers) if outcome else None
        return ChatFailed(
            reason,
            fault=fault,
            retry_after=None if wait is None else min(wait, MAX_RETRY_AFTER_SECONDS),
            calls=self._sent,
            raw=self._raw(outcome) if outcome else "",
        )

    def _may_retry(self, failure: ChatFailed) -> bool:
        """Wait before the next try, as long as the endpoint asked for; False where there is none."""
        wait = failure.retry_after
        if self._retried >= self._config.max_retries or (wait or 0) > MAX_PAUSE_SECONDS:
            return False
        if wait is None:
            # Not all threads at the same moment.
            wait = FIRST_PAUSE_SECONDS * 2**self._retried * random.uniform(0.75, 1.0)  # noqa: S311
        self._retried += 1
        pause(min(wait, MAX_PAUSE_SECONDS))
        return True

    def _raw(self, outcome: Outcome) -> str:
        """Return the body as text; a server that quotes the key back does not bring it into the database."""
        text = outcome.body.decode(errors="replace")
        return text.replace(self._config.api_key, "[key]") if self._config.api_key else text


def get_chat(model: str = "") -> ChatEndpoint | None:
    """Return the endpoint that the settings name; None where `MIRIX_LLM_MODEL` is unset.

    `model` names another model of the same endpoint.
    """
    if not settings.MIRIX_LLM_MODEL:
        return None
    return _endpoint(
        ChatConfig(
            model=model or settings.MIRIX_LLM_MODEL,
            base_url=settings.MIRIX_LLM_BASE_URL or PUBLIC_URL,
            api_key=settings.MIRIX_LLM_API_KEY,
            timeout=settings.MIRIX_LLM_TIMEOUT_SECONDS,
            max_retries=settings.MIRIX_LLM_MAX_RETRIES,
        )
    )


@lru_cache(maxsize=8)
def _endpoint(config: ChatConfig) -> ChatEndpoint:
    return ChatEndpoint(config)


_endpoints: weakref.WeakSet[ChatEndpoint] = weakref.WeakSet()


def _renew_all() -> None:
    for endpoint in _endpoints:
        endpoint._renew()


os.register_at_fork(after_in_child=_renew_all)
