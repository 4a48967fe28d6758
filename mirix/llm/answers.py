"""Reads what an OpenAI-compatible server answers to a chat request. Pure."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

Finish = Literal["stop", "length", "refusal", "other"]

FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
}
MAX_TOKENS = 10_000_000
"""A count beyond it is none."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the first choice of an answer says."""

    text: str
    finish: Finish
    prompt_tokens: int
    completion_tokens: int


class Unreadable(Exception):
    """It is no answer to a chat request; `status` is that of the error which it holds instead, else 0."""

    def __init__(self, reason: str, *, status: int = 0, prompt_tokens: int = 0, completion_tokens: int = 0):
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = completion_tokens


def read_answer(body: bytes) -> Answer:
    """Return what the body of an answer says; raises `Unreadable`."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unreadable("the endpoint's answer is not JSON") from error
    if not isinstance(answer, dict):
        raise Unreadable("the endpoint's answer is no object")
    prompt_tokens, completion_tokens = _tokens(answer.get("usage"))
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Unreadable(
            "the endpoint's answer holds no message",
            status=_status(answer.get("error")),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )
    refusal = _text(message.get("refusal"))
    return Answer(
        text=refusal or _text(message.get("content")) or _arguments(message),
        finish="refusal" if refusal else _finish(choice.get("finish_reason")),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an answer's headers ask to wait, None where they ask for nothing sensible."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with suppress(ValueError):
            if math.isfinite(seconds := float(headers.get(name, "")) / scale):
                return seconds if seconds >= 0 else None
    with suppress(ValueError, OverflowError):
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, moment.timestamp() - time.time())
    return None


def _finish(value: Any) -> Finish:
    return FINISHES.get(value, "other") if isinstance(value, str) else "other"


def _text(value: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts of which some are text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text(value.get("text")) if value.get("type", "text") in ("text", "output_text") else ""
    return "".join(map(_text, value)) if isinstance(value, list) else ""


def _arguments(message: dict[str, Any]) -> str:
    """Return the arguments of the first call of a tool, where the model answered by one."""
    calls = message.get("tool_calls")
    functions = (
        [call.get("function") for call in calls or () if isinstance(call, dict)]
        if (isinstance(calls, list))
        else []
    )
    for function in [*functions, message.get("function_call")]:
        if isinstance(function, dict) and (arguments := function.get("arguments")):
            return arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ""


def _tokens(usage: Any) -> tuple[int, int]:
    counts = [
        usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")
    ]
    prompt, completion = (count if type(count) is int and 0 <= count <= MAX_TOKENS else 0 for count in counts)
    return prompt, completion


def _status(error: Any) -> int:
    """Return the status that an error has or might have; 0 where it is none."""
    code = error.get("code") if isinstance(error, dict) else None
    if type(code) is int and 400 <= code <= 599:
        return code
    return 400 if error else 0
