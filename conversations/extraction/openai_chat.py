"""The OpenAI chat family: `{"role", "content", …}` with `tool_calls`, or the older `function_call`.

Also what others make of that shape: the role `agent`, `tool_call_ids` as a list, content as one part where
a list was asked for, arguments as an object, extra fields of all kinds.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.calls import Call, label, make_call
from conversations.extraction.content import json_type
from conversations.extraction.errors import reports_error
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

ROLES = "system, developer, user, assistant, tool or function"
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")


def matches(message: dict[str, Any]) -> bool:
    """Every object with a role is read here, unless an earlier family knows better."""
    return "role" in message


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read a message by its role."""
    role = message["role"]
    match role.strip().lower() if isinstance(role, str) else role:
        case "system":
            reading.omit("system")
        case "developer":
            reading.omit("developer")
        case "user":
            _read_speech(message, reading, "user")
        case "assistant" | "agent":
            _read_speech(message, reading, "assistant")
        case "tool" | "function":
            _read_result(message, reading)
        case _:
            shown = (
                f"unknown role “{role[:64]}”" if isinstance(role, str) else f"the role is {json_type(role)}"
            )
            reading.fault(f"{shown}; expected {ROLES}")


def _read_speech(message: dict[str, Any], reading: Reading, role: Role) -> None:
    if any(message.get(field) for field in REASONING_FIELDS):
        reading.omit("reasoning")
    reading.content(role, message.get("content"))
    for text in _spoken_elsewhere(message):
        reading.say(role, text)
    for call in read_calls(message):
        reading.call(call)


def _spoken_elsewhere(message: dict[str, Any]) -> list[str]:
    """Return what a message says outside its content: a refusal, the transcript of spoken audio."""
    refusal, audio = message.get("refusal"), message.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    return [text for text in (refusal, transcript) if isinstance(text, str) and text.strip()]


def _read_result(message: dict[str, Any], reading: Reading) -> None:
    reading.result(
        message.get("content"),
        name=message.get("name"),
        call_id=label(message.get("tool_call_id")) or _first_id(message.get("tool_call_ids")),
        is_error=_says_error(message),
    )


def _first_id(ids: Any) -> str:
    return label(ids[0]) if isinstance(ids, list) and ids else ""


def _says_error(message: dict[str, Any]) -> bool | None:
    for field in ("is_error", "isError"):
        if isinstance(message.get(field), bool):
            return bool(message[field])
    own = {key: message.get(key) for key in ("error", "status")}
    return True if reports_error(own) else None


def read_calls(message: dict[str, Any]) -> list[Call]:
    """Return the calls that a message makes, in order; `function_call` is the older form of one."""
    raw = message.get("tool_calls")
    calls = [_read_call(item) for item in (raw if isinstance(raw, list) else [raw]) if item]
    if message.get("function_call"):
        calls.append(_read_call(message["function_call"]))
    return calls


def _read_call(raw: Any) -> Call:
    if not isinstance(raw, dict):
        return make_call(arguments=raw)
    inner = next((raw[key] for key in ("function", "custom") if isinstance(raw.get(key), dict)), raw)
    arguments = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
    return make_call(id=raw.get("id"), name=inner.get("name"), arguments=arguments)


FAMILY = Family(
    name="openai_chat",
    expects="an OpenAI chat message with “role” and “content”",
    matches=matches,
    read=read,
)
