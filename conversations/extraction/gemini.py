"""Gemini: `{"role": "user" | "model", "parts": […]}` with parts that a key tells, and interaction steps.

Parts come in both spellings, `functionCall` and `function_call`. The messages of user interfaces (Vercel's AI
SDK) have `parts` as well; theirs have a type and are read by their own readers.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.anthropic import left_out
from conversations.extraction.calls import make_call, name_of
from conversations.extraction.content import as_json, is_tool_answer, json_type, media
from conversations.extraction.errors import reports_error, truth
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

CODE = "code_execution"
ROLES: dict[str, Role] = {
    "user": "user",
    "function": "user",
    "tool": "user",
    "": "user",
    "model": "assistant",
    "assistant": "assistant",
}


def matches(message: dict[str, Any]) -> bool:
    """Messages whose content is a list of parts, and the steps of interactions."""
    if _is_step(message):
        return True
    parts = message.get("parts")
    return isinstance(parts, list) and ("role" in message or any(isinstance(part, dict) for part in parts))


def _is_step(message: dict[str, Any]) -> bool:
    kind = message.get("type")
    return isinstance(kind, str) and kind in STEPS


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read the parts; the content beside them only where they say nothing."""
    if _is_step(message):
        reading.content(STEPS[message["type"]], message.get("content"))
        return
    given = message.get("role") or ""
    role = given.strip().lower() if isinstance(given, str) else ""
    if role in ("system", "developer"):
        reading.omit(role)
    elif role not in ROLES or not isinstance(given, str):
        shown = (
            f"unknown role “{given[:64]}”" if isinstance(given, str) else f"the role is {json_type(given)}"
        )
        reading.fault(f"{shown}; expected user, model or assistant")
    else:
        parts, content = message["parts"], message.get("content")
        if not any(isinstance(part, dict) and part.get("text") for part in parts):
            reading.content(ROLES[role], content if isinstance(content, str) else None)
        reading.content(ROLES[role], parts)


def _inside(part: dict[str, Any], *keys: str) -> dict[str, Any]:
    return next((part[key] for key in keys if isinstance(part.get(key), dict)), {})


def _call(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    call = _inside(part, "functionCall", "function_call", "toolCall", "tool_call")
    name = name_of(call) or _tool_type(call)
    reading.call(make_call(id=call.get("id"), name=name, arguments=call.get("args", call.get("arguments"))))


def _response(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    answer = _inside(part, "functionResponse", "function_response", "toolResponse", "tool_response")
    response = answer.get("response")
    is_error = True if isinstance(response, dict) and reports_error(response) else None
    if isinstance(response, dict) and len(response) == 1:
        # The key is the client's wrapping, not what the tool returned.
        response = next((response[key] for key in WRAPPINGS if key in response), response)
    name = answer.get("name") or _tool_type(answer)
    content = response if response is None or is_tool_answer(response) else as_json(response)
    reading.result(
        content, name=name, call_id=answer.get("id"), is_error=is_error, holder=answer, read=OF_RESPONSE
    )
    for extra in answer["parts"] if isinstance(answer.get("parts"), list) else ():
        reading.content("user", extra)


def _haystack_result(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    """Read a result as Haystack has it, with the call that it answers."""
    answer = _inside(part, "tool_call_result")
    call = _inside(answer, "origin")
    reading.result(
        answer.get("result"),
        name=name_of(call),
        call_id=call.get("id"),
        is_error=truth(answer.get("error")),
        holder=answer,
        read=("result", "error"),
    )


def _tool_type(call: dict[str, Any]) -> Any:
    kind = call.get("tool_type", call.get("toolType"))
    return kind.lower() if isinstance(kind, str) else kind


def _code(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    code = _inside(part, "executableCode", "executable_code")
    reading.call(make_call(id=code.get("id"), name=CODE, arguments=code.get("code")))


def _code_result(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    result = _inside(part, "codeExecutionResult", "code_execution_result")
    outcome = result.get("outcome")
    reading.result(
        result.get("output"),
        name=CODE,
        call_id=result.get("id"),
        is_error=outcome != "OUTCOME_OK" if isinstance(outcome, str) else None,
        holder=result,
        read=("output",),
    )


_inline = media("file", "inlineData", "inline_data", "fileData", "file_data")


def _file(part: dict[str, Any], reading: Reading, role: Role) -> None:
    file = _inside(part, "inlineData", "inline_data", "fileData", "file_data")
    kind = str(file.get("mimeType") or file.get("mime_type") or "").partition("/")[0]
    text = _inline(part)
    reading.say(role, text.replace("[file", f"[{kind}", 1) if kind in ("image", "audio", "video") else text)


STEPS: dict[str, Role] = {"model_output": "assistant", "user_input": "user"}
OF_RESPONSE = ("response", "parts")
WRAPPINGS = ("return_value", "result", "output", "error")

FAMILY = Family(
    name="gemini",
    matches=matches,
    read=read,
    keys={
        **dict.fromkeys(("functionCall", "function_call", "toolCall", "tool_call"), _call),
        **dict.fromkeys(
            ("functionResponse", "function_response", "toolResponse", "tool_response"), _response
        ),
        "tool_call_result": _haystack_result,
        **dict.fromkeys(("executableCode", "executable_code"), _code),
        **dict.fromkeys(("codeExecutionResult", "code_execution_result"), _code_result),
        **dict.fromkeys(("inlineData", "inline_data", "fileData", "file_data"), _file),
        **dict.fromkeys(("videoMetadata", "video_metadata"), left_out("notice")),
        **dict.fromkeys(("thoughtSignature", "thought_signature", "thought"), left_out("reasoning")),
    },
)
