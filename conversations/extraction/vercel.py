"""Vercel's AI SDK: the parts of UI messages (`tool-…`, `dynamic-tool`) and of model messages (`tool-call`).

In a UI message one part is a call and, by its state, what came of it. Older ones keep them as
`tool-invocation` parts or in `toolInvocations` beside the content.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.anthropic import left_out
from conversations.extraction.calls import make_call
from conversations.extraction.content import as_json, is_tool_answer, media
from conversations.extraction.errors import truth
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role


def matches(message: dict[str, Any]) -> bool:
    """Older UI messages: content, and invocations or attachments beside it."""
    parts = message.get("parts")
    return not (isinstance(parts, list) and parts) and (
        isinstance(message.get("toolInvocations"), list)
        or isinstance(message.get("experimental_attachments"), list)
    )


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read the invocations, then what was said about them."""
    invocations = message.get("toolInvocations")
    for invocation in invocations if isinstance(invocations, list) else ():
        if isinstance(invocation, dict):
            _invocation(invocation, reading, "assistant")
        else:
            reading.unknown("assistant", "tool invocation")
    rest = {key: value for key, value in message.items() if key not in ("toolInvocations", "parts")}
    attachments = rest.pop("experimental_attachments", None)
    if isinstance(attachments, list):
        shown = [_attachment(item) for item in attachments if isinstance(item, dict)]
        content = rest.get("content")
        rest["content"] = [*(content if isinstance(content, list) else [content]), *shown]
    reading.inner(rest)


def _attachment(item: dict[str, Any]) -> str:
    kind = str(item.get("contentType") or "").partition("/")[0]
    return media(kind if kind in ("image", "audio", "video") else "file", "url")(item)


def _call(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    arguments = next((part[key] for key in ("input", "args", "arguments", "rawInput") if key in part), None)
    reading.call(make_call(id=part.get("toolCallId"), name=_name(part), arguments=arguments))


def _name(part: dict[str, Any]) -> Any:
    """Return the tool's name; a UI part, which alone has a state, may have it in its type."""
    if part.get("toolName") or not isinstance(part.get("state"), str):
        return part.get("toolName")
    kind = part.get("type")
    return kind.removeprefix("tool-") if isinstance(kind, str) and kind.startswith("tool-") else ""


def _invocation(part: dict[str, Any], reading: Reading, role: Role) -> None:
    inner = part.get("toolInvocation")
    if isinstance(inner, dict):
        _invocation(inner, reading, role)
        return
    _call(part, reading, role)
    state = part.get("state")
    if state == "output-error" or part.get("errorText"):
        _answer(part, reading, part.get("errorText"), is_error=True)
    elif state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, dict) else None
        _answer(part, reading, f"denied: {reason}" if reason else "denied", is_error=True)
    elif "output" in part or "result" in part or state in ("output-available", "result"):
        _answer(part, reading, part.get("output", part.get("result")), is_error=_said(part))


def _answer(part: dict[str, Any], reading: Reading, content: Any, *, is_error: bool | None) -> None:
    call_id = part.get("toolCallId")
    reading.result(content, name=_name(part), call_id=call_id, is_error=is_error, holder=part, read=OF_ANSWER)


def _said(part: dict[str, Any]) -> bool | None:
    return truth(part.get("isError"))


def _model_call(part: dict[str, Any], reading: Reading, role: Role) -> None:
    read_part = _invocation if isinstance(part.get("state"), str) else _call
    read_part(part, reading, role)


def _result(part: dict[str, Any], reading: Reading, role: Role) -> None:
    if isinstance(part.get("state"), str):  # of a tool that is called “result”
        _invocation(part, reading, role)
        return
    output = part.get("output", part.get("result"))
    content, is_error = output, _said(part)
    if isinstance(output, dict) and output.get("type") in OUTPUTS:
        content, failed = output.get("value", output.get("reason")), OUTPUTS[output["type"]]
        is_error = failed if is_error is None else is_error
        if str(output["type"]).endswith("json") and not is_tool_answer(content):
            content = as_json(content)
    elif part.get("type") == "tool-error":
        content, is_error = part.get("error"), True
    elif output is None:
        content = part.get("content", part.get("experimental_content"))
    _answer(part, reading, content, is_error=is_error)


def _step_start(_part: dict[str, Any], reading: Reading, _role: Role) -> None:
    reading.close()


def _decision(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    word, reason = "approved" if part.get("approved") else "denied", part.get("reason")
    reading.say("user", f"[{word}: {reason}]" if isinstance(reason, str) and reason else f"[{word}]")


OF_ANSWER = ("output", "result", "error", "errorText", "experimental_content", "approval", "toolInvocation")
OUTPUTS: dict[str, bool | None] = {
    "text": None,
    "json": None,
    "content": None,
    "error-text": True,
    "error-json": True,
    "execution-denied": True,
}

FAMILY = Family(
    name="vercel",
    matches=matches,
    read=read,
    parts={
        "tool-call": _model_call,
        "tool-result": _result,
        "tool-error": _result,
        "tool-approval-request": left_out("notice"),
        "tool-approval-response": _decision,
        "tool-invocation": _invocation,
        "dynamic-tool": _invocation,
        "tool-*": _invocation,
        "step-start": _step_start,
        "source": left_out("source"),
        "source-*": left_out("source"),
        "reasoning-file": left_out("reasoning"),
        "data-*": left_out("data"),
    },
)
