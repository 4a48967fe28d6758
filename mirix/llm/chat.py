"""Chat with any OpenAI-compatible endpoint: one question, one answer that ought to fit a JSON schema.

Servers differ in what they take of a schema: an endpoint is tried from the strictest way down to a plain
question, and it is remembered for a while what worked. What goes wrong is `ChatFailed`, with a short reason
that holds no text of anybody, and with whose fault it is. Neither within a transaction nor in a web request:
one try may take `MIRIX_LLM_TIMEOUT_SECONDS`, and there are several.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

from mirix.llm.calls import (
    FAILED,
    NEW_LIMIT,
    OLD_LIMIT,
    Call,
    ChatConfig,
    ChatFailed,
    ChatReply,
    Refused,
    Way,
)
from mirix.text import clean_text

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["ChatConfig", "ChatEndpoint", "ChatFailed", "ChatReply", "get_chat"]

PUBLIC_URL = "https://api.openai.com/v1"
KNOWN_SECONDS = 3600.0
"""How long it is remembered what an endpoint takes, where it refused the rest."""
GUESSED_SECONDS = 600.0
"""The same where it failed at the rest, for which there may have been another cause."""
FAILING_SECONDS = 60.0
"""How long an endpoint that failed in every way is asked in the plainest alone."""

ASK = "Answer with one JSON value that fits this JSON Schema, and with nothing else:"
WAYS = (
    Way("schema", "json_schema", has_schema=True),
    Way("json", "json_object", has_schema=True),
    Way("json", "json_object"),
    Way("plain"),
)


@dataclass(frozen=True)
class _Finding:
    """How an endpoint is to be asked, and until when that is believed."""

    way: Way
    until: float
    is_failing: bool = False
    """Whether it failed in this way and in all others."""


class ChatEndpoint:
    """One model behind one endpoint; shared by the threads of a process, which share its connections."""

    def __init__(self, config: ChatConfig) -> None:
        self.config = config
        self.model = config.model
        # By the name of each schema.
        self._known: dict[str, _Finding] = {}
        self._limit = OLD_LIMIT
        self._lock = threading.Lock()
        self._finding_out = threading.Lock()
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
                {"role": "system", "content": clean_text(f"{system}\n\n{ASK}\n{json.dumps(schema)}")},
                {"role": "user", "content": clean_text(user)},
            ],
        }
        if max_tokens is not None:
            request[self._limit] = max_tokens
        call = Call(
            config=self.config,
            connected=self._connected,
            request=request,
            schema=schema,
            schema_name=schema_name,
        )
        try:
            return self._ask(call)
        except Refused as refused:
            raise refused.failure from refused
        finally:
            if NEW_LIMIT in request:
                self._limit = NEW_LIMIT

    def close(self) -> None:
        """Give up the connections; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _ask(self, call: Call) -> ChatReply:
        """Ask in the way that is known; else in the strictest, and find out another where that is refused."""
        if finding := self._finding(call.schema_name):
            return self._ask_as_found(call, finding)
        strictest = WAYS[0]
        try:
            reply = call.ask(strictest, is_trial=True)
        except Refused as refused:
            if not refused.may_be_way:
                raise
            return self._find_out(call, refused)
        self._remember(call.schema_name, strictest, KNOWN_SECONDS)
        return reply

    def _ask_as_found(self, call: Call, finding: _Finding) -> ChatReply:
        if finding.is_failing:
            reply = call.ask(finding.way, is_trial=True)
        else:
            try:
                return call.ask(finding.way)
            except Refused:
                # Because of this question, or the server is another one now: the next call finds out.
                self._known.pop(call.schema_name, None)
                raise
        # It answers again: the next call finds out how strictly.
        self._known.pop(call.schema_name, None)
        return reply

    def _find_out(self, call: Call, refused: Refused) -> ChatReply:
        """Ask in one way after the other until one is taken; of several threads one does, the others wait."""
        with self._finding_out:
            finding = self._finding(call.schema_name)
            if finding is None:
                return self._ask_in_other_ways(call, refused)
        if finding.is_failing:
            raise refused
        return self._ask_as_found(call, finding)

    def _ask_in_other_ways(self, call: Call, refused: Refused) -> ChatReply:
        has_failed = [refused.status in FAILED]
        for way in WAYS[1:]:
            try:
                reply = call.ask(way, is_trial=True)
            except Refused as again:
                if not again.may_be_way:
                    raise
                refused = again
                has_failed.append(again.status in FAILED)
            else:
                self._remember(call.schema_name, way, GUESSED_SECONDS if any(has_failed) else KNOWN_SECONDS)
                return reply
        if all(has_failed):
            self._remember(call.schema_name, WAYS[-1], FAILING_SECONDS, is_failing=True)
        raise refused

    def _finding(self, schema_name: str) -> _Finding | None:
        finding = self._known.get(schema_name)
        return finding if finding and time.monotonic() < finding.until else None

    def _remember(self, schema_name: str, way: Way, seconds: float, *, is_failing: bool = False) -> None:
        self._known[schema_name] = _Finding(way, time.monotonic() + seconds, is_failing)

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
        """Begin without connections: a forked process must not speak in those of its parent."""
        self._lock, self._finding_out = threading.Lock(), threading.Lock()
        self._client = None


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
