"""Whole replies of providers.

The messages inside are read as if they stood in the request themselves. Of several alternatives of
one reply, the first is what the agent went on with; the others are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conversations.extraction.payloads import placeholder
from conversations.extraction.reading import Family, Reading

LISTS = ("output", "outputs", "steps")
TRANSCRIPT_FIELDS = ("segments", "words", "language", "duration")


def matches(reply: dict[str, Any]) -> bool:
    """Objects without a role that hold what has one, or say why they hold none."""
    return "role" not in reply and _reader(reply) is not None


def read(reply: dict[str, Any], reading: Reading) -> None:
    """Read the messages inside, in order."""
    if reply.get("instructions"):  # of the request, which such replies repeat
        reading.omit("system")
    if reader := _reader(reply):
        reader(reply, reading)


def _reader(reply: dict[str, Any]) -> Callable[[dict[str, Any], Reading], None] | None:
    """Return how to read this kind of container; None for what is none."""
    return next((read_it for is_one, read_it in KINDS if is_one(reply)), None)


def _holds_messages(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("message"), dict)
    return isinstance(value, list) and any(
        isinstance(item, dict) and ("role" in item or isinstance(item.get("type"), str) or "parts" in item)
        for item in value
    )


def _is_embedding(item: Any) -> bool:
    return isinstance(item, dict) and "embedding" in item


def _is_image(item: Any) -> bool:
    return isinstance(item, dict) and ("b64_json" in item or "revised_prompt" in item)


def _read_lists(reply: dict[str, Any], reading: Reading) -> None:
    for field in LISTS:
        value = reply.get(field)
        if isinstance(value, dict) and isinstance(value.get("message"), dict):
            reading.inner(value["message"])
        elif isinstance(value, list) and _holds_messages(value):
            for message in value:
                reading.inner(message)


def _read_first(alternatives: list[Any], reading: Reading) -> None:
    if not alternatives:
        reading.omit("provider error")
    for position, alternative in enumerate(alternatives):
        if position:
            reading.omit("alternative reply")
        elif not isinstance(alternative, dict):
            reading.inner(alternative)
        elif isinstance(alternative.get("content"), dict):
            reading.inner({"role": "model", "parts": []} | alternative["content"])
        elif isinstance(alternative.get("text"), str):
            reading.say("assistant", alternative["text"])
        elif (message := alternative.get("message", alternative.get("delta"))) is not None:
            reading.inner(_with_role(message))
        else:
            reading.omit("provider error")


def _with_role(message: Any) -> Any:
    """Return a message with its role: pieces of a stream name it only in the first."""
    if isinstance(message, dict) and ("content" in message or "tool_calls" in message):
        return {"role": "assistant"} | message
    return message


def _read_data(data: list[Any], reading: Reading) -> None:
    for item in data:
        if _is_embedding(item):
            reading.omit("embedding")
            continue
        image, prompt = item.get("b64_json") or item.get("url"), item.get("revised_prompt")
        name = prompt if isinstance(prompt, str) else ""
        reading.say("assistant", placeholder("image", image if isinstance(image, str) else "", name=name))


def _read_failure(_reply: dict[str, Any], reading: Reading) -> None:
    reading.omit("provider error")


def _read_body(reply: dict[str, Any], reading: Reading) -> None:
    body = reply["body"]
    reading.inner({"role": "assistant", "content": body} if isinstance(body, str) else body)


def _is_wrapped(reply: dict[str, Any]) -> bool:
    return isinstance(reply.get("message"), dict) and "type" not in reply and "role" in reply["message"]


def _is_failure(reply: dict[str, Any]) -> bool:
    return isinstance(reply.get("error"), dict) and reply.get("type", "error") == "error"


def _is_data(reply: dict[str, Any]) -> bool:
    data = reply.get("data")
    return isinstance(data, list) and bool(data) and all(_is_embedding(x) or _is_image(x) for x in data)


def _is_http(reply: dict[str, Any]) -> bool:
    return isinstance(reply.get("body"), str | dict) and "headers" in reply and "status" in reply


def _is_transcript(reply: dict[str, Any]) -> bool:
    return isinstance(reply.get("text"), str) and any(field in reply for field in TRANSCRIPT_FIELDS)


KINDS: tuple[tuple[Callable[[dict[str, Any]], bool], Callable[[dict[str, Any], Reading], None]], ...] = (
    (
        lambda reply: isinstance(reply.get("choices"), list),
        lambda reply, out: _read_first(reply["choices"], out),
    ),
    (
        lambda reply: isinstance(reply.get("candidates"), list),
        lambda reply, out: _read_first(reply["candidates"], out),
    ),
    (_is_wrapped, lambda reply, out: out.inner(reply["message"])),
    (lambda reply: any(_holds_messages(reply.get(field)) for field in LISTS), _read_lists),
    (_is_failure, _read_failure),
    (_is_data, lambda reply, out: _read_data(reply["data"], out)),
    (_is_http, _read_body),
    (_is_transcript, lambda reply, out: out.say("assistant", reply["text"])),
)

FAMILY = Family(name="replies", matches=matches, read=read)
