"""The OpenAI chat family: `{"role", "content", …}` with `tool_calls`, or the older `function_call`.

Also what others make of that shape: the role `agent`, `tool_call_ids` as a list, content as one part where
a list was asked for, arguments as an object, extra fields of all kinds.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.calls import Call, label, make_call
from conversations.extraction.content import Content, as_text, json_type, read_content
from conversations.extraction.errors import reports_error
from conversations.extraction.reading import (
    DEVELOPER,
    EMPTY,
    REASONING,
    SYSTEM,
    Draft,
    Family,
    Omission,
    unreadable,
)

ROLES = "system, developer, user, assistant, tool or function"
MAX_KINDS_NAMED = 5
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking")


def matches(message: dict[str, Any]) -> bool:
    """Every object with a role is read here, unless an earlier family knows better."""
    return "role" in message


def read(message: dict[str, Any]) -> list[Draft] | Omission:
    """Return the one turn of a message, or why there is none."""
    role = message["role"]
    match role.strip().lower() if isinstance(role, str) else role:
        case "system":
            return SYSTEM
        case "developer":
            return DEVELOPER
        case "user":
            return _read_speech(message, "user")
        case "assistant" | "agent":
            return _read_speech(message, "assistant")
        case "tool" | "function":
            return [_read_result(message)]
    shown = f"unknown role “{role[:64]}”" if isinstance(role, str) else f"the role is {json_type(role)}"
    return unreadable(f"{shown}; expected {ROLES}")


def _read_speech(message: dict[str, Any], role: Any) -> list[Draft] | Omission:
    content = read_content(message.get("content"))
    calls = read_calls(message)
    texts = [content.text, *_spoken_elsewhere(message)]
    if not calls and not content.is_readable and len(texts) == 1:
        return _nothing_to_read(message, content)
    return [Draft(role=role, text="\n".join(text for text in texts if text), calls=calls)]


def _spoken_elsewhere(message: dict[str, Any]) -> list[str]:
    """Return what a message says outside its content: a refusal, the transcript of spoken audio."""
    refusal, audio = message.get("refusal"), message.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    return [text for text in (refusal, transcript) if isinstance(text, str) and text.strip()]


def _nothing_to_read(message: dict[str, Any], content: Content) -> Omission:
    if content.unknown:
        kinds = ", ".join(f"“{kind}”" for kind in list(dict.fromkeys(content.unknown))[:MAX_KINDS_NAMED])
        return unreadable(
            f"unknown content: {kinds}; expected a string or a list of text, image, audio and file parts"
        )
    if content.has_reasoning or any(message.get(field) for field in REASONING_FIELDS):
        return REASONING
    return EMPTY


def _read_result(message: dict[str, Any]) -> Draft:
    return Draft(
        role="tool",
        text=as_text(message.get("content")).text,
        tool_name=label(message.get("name")),
        tool_call_id=label(message.get("tool_call_id")) or _first_id(message.get("tool_call_ids")),
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
