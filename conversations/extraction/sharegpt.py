"""ShareGPT: `{"from": "human", "value": "…"}`, as data sets of conversations have it.

Calls are messages of their own (`function_call`) or tagged in the model's text, `<tool_call>{…}</tool_call>`,
with the result in `<tool_response>…</tool_response>`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.reading import Family, Reading
from conversations.extraction.types import Role

SPEECH: dict[str, Role] = {
    **dict.fromkeys(("human", "user", "prompter"), "user"),
    **dict.fromkeys(
        ("gpt", "assistant", "chatgpt", "bing", "bard", "claude", "model", "ai", "bot"), "assistant"
    ),
}
CALLS = ("function_call", "function-call", "tool_call", "tool_calls")
RESULTS = ("observation", "tool", "function", "function_response", "function-response", "tool_response")
VALUES = ("value", "content", "text")
CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
ARGUMENTS = ("arguments", "parameters", "args", "input")


def matches(message: dict[str, Any]) -> bool:
    """Every object that says from whom, and what."""
    return isinstance(message.get("from"), str) and any(name in message for name in VALUES)


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read a message by whom it is from."""
    sender = message["from"].strip().lower()
    value = next(message[name] for name in VALUES if name in message)
    if sender == "system":
        reading.omit("system")
    elif sender in CALLS:
        _read_calls(value, reading)
    elif sender in RESULTS:
        _read_results(value, reading, message.get("name"))
    elif sender not in SPEECH:
        expected = ", ".join([*list(SPEECH)[:2], "gpt", "assistant", "system", *CALLS[:1], *RESULTS[:2]])
        reading.fault(f"from “{sender[:64]}”, whom nobody knows; expected {expected}")
    elif not isinstance(value, str):
        reading.content(SPEECH[sender], value)
    else:
        _read_speech(value, reading, SPEECH[sender])


def _read_speech(text: str, reading: Reading, role: Role) -> None:
    calls = CALL.findall(text) if role == "assistant" else []
    reading.say(role, CALL.sub("", text).strip() if calls else text)
    for call in calls:
        _read_calls(call, reading)


def _read_calls(value: Any, reading: Reading) -> None:
    """Read one call, a list of calls, or the JSON text of either; else the text is a call as it stands."""
    data = _data(value)
    for item in data if isinstance(data, list) else [data]:
        inner = item.get("function", item) if isinstance(item, dict) else item
        if not isinstance(inner, dict):
            reading.call(make_call(arguments=inner))
            continue
        arguments = next((inner[name] for name in ARGUMENTS if name in inner), None)
        reading.call(make_call(id=item.get("id"), name=inner.get("name"), arguments=arguments))


def _read_results(value: Any, reading: Reading, name: Any) -> None:
    tagged = RESPONSE.findall(value) if isinstance(value, str) else []
    for response in tagged:
        data = _data(response)
        is_named = isinstance(data, dict) and isinstance(data.get("name"), str) and "content" in data
        if is_named:
            reading.result(data["content"], name=data["name"], call_id=data.get("tool_call_id"))
        else:
            reading.result(response, name=name)
    if not tagged:
        reading.result(value, name=name)


def _data(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


FAMILY = Family(
    name="sharegpt",
    matches=matches,
    read=read,
)
