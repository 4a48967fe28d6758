"""Events of an agent's session: `{"type": "user.message", …}`, and others with dots in their type.

Some hold what they say in themselves, some under `data`. A recording of a client's calls is read too: each is
`[method, what was passed]`, and what the client sent comes back in the stream of events and is read there.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.errors import truth
from conversations.extraction.reading import Family, Reading

EVENT = re.compile(
    r"(user|agent|assistant|tool|session|span|system|permission|hook|subagent|skill|abort|external_tool)\.\w+(\.\w+)*"
)
METHOD = re.compile(r"[A-Za-z_]\w*(\.\w+)+")
CALL_TYPES = re.compile(r"agent\.(\w+_)?tool_use")
RESULT_TYPES = re.compile(r"(agent|user)\.(\w+_)?tool_result")
RESULT_IDS = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
REASONING_TYPES = ("agent.thinking", "assistant.reasoning")


def is_recorded_call(value: Any) -> bool:
    """Return whether a value is one recorded call of a client: a dotted name, and an object or list."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and METHOD.fullmatch(value[0]) is not None
        and isinstance(value[1], dict | list)
    )


def as_message(value: Any) -> Any:
    """Return a recorded call as an object; everything else as it is."""
    return {"recorded_call": value[0], "passed": value[1]} if is_recorded_call(value) else value


def matches(event: dict[str, Any]) -> bool:
    """Return whether it is an event, by its dotted type, or a recorded call."""
    if "recorded_call" in event and "passed" in event:
        return True
    kind = event.get("type")
    return isinstance(kind, str) and EVENT.fullmatch(kind) is not None and "role" not in event


def read(event: dict[str, Any], reading: Reading) -> None:
    """Read an event, or the event that a recorded call brought."""
    if "recorded_call" in event:
        passed = event["passed"]
        if isinstance(passed, dict) and matches(passed):
            reading.message_id = passed.get("id")
            _read_event(passed, reading)
        else:
            reading.omit("call of the client")
    else:
        _read_event(event, reading)


def _read_event(event: dict[str, Any], reading: Reading) -> None:
    kind = event["type"]
    said = event["data"] if isinstance(event.get("data"), dict) else event
    if kind in ("user.message", "agent.message", "assistant.message"):
        role = "user" if kind.startswith("user") else "assistant"
        reading.content("user" if role == "user" else "assistant", said.get("content"))
        for request in said["toolRequests"] if isinstance(said.get("toolRequests"), list) else []:
            _read_call(request, reading)
    elif CALL_TYPES.fullmatch(kind):
        _read_call(said, reading)
    elif RESULT_TYPES.fullmatch(kind):
        call_id = next((said[name] for name in RESULT_IDS if said.get(name)), "")
        is_error = truth(said.get("is_error"))
        reading.result(said.get("content"), call_id=call_id, is_error=is_error, holder=said)
    elif kind == "tool.execution_complete":
        _read_completed(said, reading)
    elif kind == "user.tool_confirmation" and isinstance(said.get("deny_message"), str):
        reading.say("user", said["deny_message"])
    elif kind in REASONING_TYPES:
        reading.omit("reasoning")
    elif kind == "system.message":
        reading.omit("system")
    else:
        reading.omit("event")


def _read_call(call: Any, reading: Reading) -> None:
    if isinstance(call, dict):
        arguments = next((call[name] for name in ("arguments", "input") if name in call), None)
        call_id = call.get("toolCallId") or call.get("id")
        reading.call(make_call(id=call_id, name=call.get("name"), arguments=arguments))


def _read_completed(said: dict[str, Any], reading: Reading) -> None:
    output = said.get("error") if said.get("success") is False else said.get("result")
    if isinstance(output, dict):
        output = output.get("content", output.get("message", output))
    reading.result(
        output,
        name=said.get("toolName"),
        call_id=said.get("toolCallId"),
        is_error=True if said.get("success") is False else None,
        holder=said,
        read=("error", "result"),
    )


FAMILY = Family(
    name="agent_events",
    matches=matches,
    read=read,
)
