"""LangChain messages, in each way they are written down.

`{"type": "human", "data": {…}}`, the same flat as `{"type": "human", "content": …}`, and the constructor's,
`{"lc": 1, "type": "constructor", "id": [… "HumanMessage"], "kwargs": {…}}`. Chunks of streams are read too.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.calls import Call, make_call
from conversations.extraction.openai_chat import read_calls
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

SPEECH: dict[str, Role] = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}
LEFT_OUT = {"system": "system", "developer": "developer", "remove": "removal"}
RESULTS = ("tool", "function")
KINDS = {*SPEECH, *LEFT_OUT, *RESULTS, "chat"} - {"user", "assistant", "developer"}
CALL_PARTS = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"})


def matches(message: dict[str, Any]) -> bool:
    """Every message that LangChain serializes, whichever way."""
    return _fields_of(message) is not None


def _fields_of(message: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a message's kind and its fields, from whichever form."""
    if message.get("type") == "constructor" and isinstance(message.get("id"), list | tuple):
        name, fields = message["id"][-1] if message["id"] else None, message.get("kwargs")
        is_message = isinstance(name, str) and name.removesuffix("Chunk").endswith("Message")
        return (_kind(name), fields) if is_message and isinstance(fields, dict) else None
    kind = _kind(message.get("type"))
    if kind not in KINDS:
        return None
    if isinstance(message.get("data"), dict):
        return kind, message["data"]
    is_flat = "content" in message and ("role" not in message or kind == "chat")
    return (kind, message) if is_flat else None


def _kind(name: Any) -> str:
    """Return `human` for `human`, `HumanMessage` and `HumanMessageChunk`."""
    return re.sub(r"Message(Chunk)?$", "", name).lower() if isinstance(name, str) else ""


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read a message by its kind."""
    found = _fields_of(message)
    if found is None:  # only what matches is read
        return
    kind, fields = found
    reading.message_id = fields.get("id")
    if kind == "chat" and isinstance(fields.get("role"), str):
        kind = fields["role"].strip().lower()
    if kind in LEFT_OUT:
        reading.omit(LEFT_OUT[kind])
    elif kind in RESULTS:
        _read_result(fields, reading)
    elif kind in SPEECH:
        _read_speech(fields, reading, SPEECH[kind])
    else:
        reading.fault(f"unknown kind of LangChain message “{kind[:64]}”; expected {', '.join(sorted(KINDS))}")


def _read_speech(fields: dict[str, Any], reading: Reading, role: Role) -> None:
    extra = fields.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    calls = _calls(fields, extra)
    reading.content(role, _without_calls(fields.get("content"), {call.id for call in calls}))
    if extra.get("reasoning_content") or extra.get("reasoning"):
        reading.omit("reasoning")
    if isinstance(extra.get("refusal"), str):
        reading.say(role, extra["refusal"])
    for call in calls:
        reading.call(call)


def _calls(fields: dict[str, Any], extra: dict[str, Any]) -> list[Call]:
    """Return the calls as LangChain parsed them, or could not; else as the model made them."""
    parsed = [item for name in ("tool_calls", "invalid_tool_calls") for item in _objects(fields.get(name))]
    calls = [
        make_call(id=item.get("id"), name=item.get("name"), arguments=item.get("args")) for item in parsed
    ]
    return calls or read_calls(extra) or _joined(_objects(fields.get("tool_call_chunks")))


def _joined(chunks: list[dict[str, Any]]) -> list[Call]:
    """Return the calls that the chunks of a stream add up to."""
    calls: dict[Any, dict[str, Any]] = {}
    for chunk in chunks:
        call = calls.setdefault(chunk.get("index"), {"id": None, "name": None, "args": ""})
        for name in ("id", "name"):
            call[name] = call[name] or chunk.get(name)
        call["args"] += chunk["args"] if isinstance(chunk.get("args"), str) else ""
    return [make_call(id=call["id"], name=call["name"], arguments=call["args"]) for call in calls.values()]


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _without_calls(content: Any, ids: set[str]) -> Any:
    """Return content without the parts that repeat calls which stand beside it."""
    if not ids or not isinstance(content, list):
        return content
    return [part for part in content if not _repeats_call(part, ids)]


def _repeats_call(part: Any, ids: set[str]) -> bool:
    if not isinstance(part, dict) or part.get("type") not in CALL_PARTS:
        return False
    own = [part[name] for name in ("call_id", "id") if isinstance(part.get(name), str)]
    return not own or any(name in ids for name in own)


def _read_result(fields: dict[str, Any], reading: Reading) -> None:
    if fields.get("artifact") is not None:
        reading.omit("artifact")
    reading.result(
        fields.get("content"),
        name=fields.get("name"),
        call_id=fields.get("tool_call_id"),
        is_error=True if fields.get("status") == "error" else None,
        holder=fields,
    )


FAMILY = Family(
    name="langchain",
    matches=matches,
    read=read,
)
