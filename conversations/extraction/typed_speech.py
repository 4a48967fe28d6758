"""Messages that say who speaks by their type: `{"type": "user", "content": …}`, `{"type": "gemini", …}`.

Sessions of Gemini's command line are written so; a call stands with what came back from it.
"""

from __future__ import annotations

from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

SPEECH: dict[str, Role] = {
    "user": "user",
    "gemini": "assistant",
    "model": "assistant",
    "assistant": "assistant",
}
NOTES = ("info", "warning", "error")


def matches(message: dict[str, Any]) -> bool:
    """Return whether the type is a speaker; notes of the program carry id and time as well."""
    kind = message.get("type")
    if not isinstance(kind, str) or "role" in message or "content" not in message:
        return False
    return kind in SPEECH or (kind in NOTES and "timestamp" in message and "id" in message)


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read what is said and called, each call's result behind all calls."""
    kind = message["type"]
    if kind in NOTES:
        reading.omit("note of the program")
        return
    role = SPEECH[kind]
    reading.content(role, message.get("content"))
    if message.get("thoughts"):
        reading.omit("reasoning")
    raw = message.get("toolCalls")
    calls = [call for call in raw if isinstance(call, dict)] if isinstance(raw, list) else []
    for call in calls:
        reading.call(make_call(id=call.get("id"), name=call.get("name"), arguments=call.get("args")))
    for call in calls:
        failed = call.get("status") == "error"
        output = (call.get("error") if failed else None) or _output(call.get("result"))
        if output is not None or failed:
            is_error = True if failed else None
            reading.result(output, name=call.get("name"), call_id=call.get("id"), is_error=is_error)


def _output(result: Any) -> Any:
    """Return what a tool gave back, out of the parts it lies in."""
    if not isinstance(result, list):
        return result
    outputs = []
    for part in result:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        inner = response.get("response") if isinstance(response, dict) else part
        outputs.append(inner.get("output", inner.get("error", inner)) if isinstance(inner, dict) else inner)
    return outputs[0] if len(outputs) == 1 else outputs


FAMILY = Family(
    name="typed_speech",
    matches=matches,
    read=read,
)
