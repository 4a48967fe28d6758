"""The OpenAI chat family: `{"role", "content", …}` with `tool_calls`, or the older `function_call`.

Also what others make of that shape: other words for the roles, `tool_call_ids` as a list, content as one part
where a list was asked for, arguments as an object, extra fields of all kinds.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.calls import Call, label, make_call, name_of, parsed
from conversations.extraction.content import NAME_KEYS, PARTS, json_type, media
from conversations.extraction.errors import reports_error, truth
from conversations.extraction.reading import PLAIN, Family, Reading
from conversations.extraction.types import Role

ROLES = "system, developer, user, assistant, tool or function"
REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "tool_plan")
CONTENT_FIELDS = ("content", "text", "blocks", "message")
RESULT_FIELDS = ("content", "text", "output", "result", "response", "blocks")
ASIDE = frozenset(
    {
        "role",
        "id",
        "name",
        "metadata",
        "usage",
        "annotations",
        "created_at",
        "createdAt",
        "timestamp",
        "date",
        "audio",
        "tool_calls",
        "function_call",
        "stop_details",
        "additional_kwargs",
        "extra_content",
    }
)
RESULT_TYPES = ("tool_result", "tool-result", "tool-error", "tool-approval-response", "function_call_output")
RESULT_KEYS = ("toolResult", "tool_call_result", "functionResponse", "function_response")


def matches(message: dict[str, Any]) -> bool:
    """Every object with a role is read here, unless an earlier family knows better."""
    return "role" in message or "_role" in message


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read a message by its role; older Haystack puts `_` before its fields."""
    if "role" not in message:
        message = {key.removeprefix("_"): item for key, item in message.items()}
    role = message["role"]
    match role.strip().lower() if isinstance(role, str) else role:
        case "system":
            reading.omit("system")
        case "developer":
            reading.omit("developer")
        case "user" | "human":
            _read_speech(message, reading, "user")
        case "assistant" | "agent" | "model" | "ai" | "bot" | "chatbot":
            _read_speech(message, reading, "assistant")
        case "tool" | "function" | "ipython" | "observation":
            _read_results(message, reading)
        case "data":
            reading.omit("data")
        case _:
            shown = (
                f"unknown role “{role[:64]}”" if isinstance(role, str) else f"the role is {json_type(role)}"
            )
            reading.fault(f"{shown}; expected {ROLES}")


def _read_speech(message: dict[str, Any], reading: Reading, role: Role) -> None:
    if message.keys() <= PLAIN and "content" in message:  # as most are: nothing is said anywhere else
        reading.content(role, message["content"])
        _read_new_calls(message, reading)
        return
    if any(message.get(field) for field in REASONING_FIELDS):
        reading.omit("reasoning")
    _read_executed(message.get("executed_tools"), reading)
    _read_answers(message, reading)
    reading.content(role, _first(message, CONTENT_FIELDS))
    for text in _spoken_elsewhere(message):
        reading.say(role, text)
    if isinstance(message.get("images"), list):
        reading.content(role, message["images"])
    if isinstance(message.get("attachments"), list):
        for attachment in message["attachments"]:
            _read_attachment(attachment, reading, role)
    _read_new_calls(message, reading)
    if not reading.has_anything and not any(field in message for field in CONTENT_FIELDS):
        _report_strangers(message, reading)


def _read_new_calls(message: dict[str, Any], reading: Reading) -> None:
    for call in [call for call in read_calls(message) if not reading.has_call(call)]:
        reading.call(call)


def _read_attachment(attachment: Any, reading: Reading, role: Role) -> None:
    """Read what is attached: its text under its name, else what stands for it."""
    if not isinstance(attachment, dict):
        reading.content(role, attachment)
        return
    text = _first(attachment, ("content", "text"))
    if isinstance(text, str) and text.strip():
        reading.say(role, f"{media('file')({'name': _first(attachment, NAME_KEYS)})}\n{text}")
    elif isinstance(attachment.get("type"), str) and attachment["type"] in PARTS:
        reading.content(role, attachment)
    else:
        reading.say(role, media("file", "url", "data", "file")(attachment))


def _first(message: dict[str, Any], fields: tuple[str, ...]) -> Any:
    return next((message[field] for field in fields if message.get(field) is not None), None)


def _report_strangers(message: dict[str, Any], reading: Reading) -> None:
    """Report a message whose words may stand in fields that nobody here knows, rather than call it empty."""
    strangers = [key for key in message if key not in ASIDE and _may_hold_words(message[key])]
    if strangers:
        named = ", ".join(f"“{key[:64]}”" for key in strangers[:5])
        reading.fault(f"expected “content”, got only {named} beside “role”")


def _may_hold_words(value: Any) -> bool:
    return bool(value) and (
        isinstance(value, list | dict) or (isinstance(value, str) and " " in value.strip())
    )


def _read_executed(tools: Any, reading: Reading) -> None:
    """Read the tools that the provider ran before it spoke."""
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            name = tool.get("name") or tool.get("type") or "tool"
            reading.call(make_call(name=name, arguments=tool.get("arguments")))
            if tool.get("output") is not None:
                reading.result(tool["output"], name=name)
        else:
            reading.unknown("assistant", "executed tool")


def _spoken_elsewhere(message: dict[str, Any]) -> list[str]:
    """Return what is said outside the content: a refusal, why one was stopped, the words of spoken audio."""
    refusal, audio, details = (message.get(field) for field in ("refusal", "audio", "stop_details"))
    transcript = audio.get("transcript") if isinstance(audio, dict) else None
    stopped = details.get("explanation") if isinstance(details, dict) else None
    return [text for text in (refusal, transcript, stopped) if isinstance(text, str) and text.strip()]


def _read_results(message: dict[str, Any], reading: Reading) -> None:
    """Read what tools returned: the content itself, or the results that are its parts."""
    field = next((field for field in RESULT_FIELDS if message.get(field) is not None), "")
    content = message.get(field)
    if isinstance(content, list) and any(_is_result(part) for part in content):
        reading.content("user", content)
        return
    if not content and _read_answers(message, reading):
        return
    reading.result(
        content,
        name=_first(message, ("name", "tool_name", "toolName")),
        call_id=label(_first(message, ("tool_call_id", "toolCallId")))
        or _first_id(message.get("tool_call_ids")),
        is_error=_says_error(message),
        holder=message,
        read=(field,),
    )


def _read_answers(message: dict[str, Any], reading: Reading) -> bool:
    """Read Cohere's `tool_results`, each with the call that it answers; return whether there are any."""
    answers = message.get("tool_results")
    if not (isinstance(answers, list) and answers and all(isinstance(item, dict) for item in answers)):
        return False
    for answer in answers:
        call = answer["call"] if isinstance(answer.get("call"), dict) else {}
        outputs = answer.get("outputs")
        content = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs
        reading.result(
            content, name=call.get("name"), call_id=call.get("id"), holder=answer, read=("call", "outputs")
        )
    return True


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and (
        part.get("type") in RESULT_TYPES or any(key in part for key in RESULT_KEYS)
    )


def _first_id(ids: Any) -> str:
    return label(ids[0]) if isinstance(ids, list) and ids else ""


def _says_error(message: dict[str, Any]) -> bool | None:
    for field in ("is_error", "isError"):
        if (said := truth(message.get(field))) is not None:
            return said
    own = {key: message.get(key) for key in ("error", "status")}
    return True if reports_error(own) else None


def read_calls(message: dict[str, Any]) -> list[Call]:
    """Return the calls that a message makes, in order; `function_call` is the older form of one."""
    more = message.get("additional_kwargs")
    raw = message.get("tool_calls") or (more.get("tool_calls") if isinstance(more, dict) else None)
    raw = parsed(raw, may_be_python=True) if isinstance(raw, str) else raw
    calls = [_read_call(item) for item in (raw if isinstance(raw, list) else [raw]) if item]
    if older := message.get("function_call"):
        call = _read_call(parsed(older, may_be_python=True) if isinstance(older, str) else older)
        known = {(other.name, other.text) for other in calls}
        if (call.name or call.text) and (
            call.name,
            call.text,
        ) not in known:  # some fill it with empty strings
            calls.append(call)
    return calls


def _read_call(raw: Any) -> Call:
    if not isinstance(raw, dict):
        return make_call(arguments=raw)
    inner = next((raw[key] for key in ("function", "custom") if isinstance(raw.get(key), dict)), raw)
    arguments = next(
        (inner[key] for key in ("arguments", "input", "args", "parameters") if key in inner), None
    )
    return make_call(id=raw.get("id"), name=name_of(inner), arguments=arguments)


FAMILY = Family(name="openai_chat", matches=matches, read=read)
