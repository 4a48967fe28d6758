"""ShareGPT: `{"from": "human", "value": "…"}`, as data sets of conversations have it.

Calls are messages of their own (`function_call`) or tagged in the model's text, `<tool_call>{…}</tool_call>`,
with the result in `<tool_response>…</tool_response>`.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.calls import make_call, name_of, parsed
from conversations.extraction.content import as_text
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
CALL = re.compile(r"<tool_call>\s*((?:(?!<tool_call>).)*?)\s*</tool_call>", re.DOTALL)
NAME = re.compile(r"""["']name["']\s*:\s*["']([^"']+)["']|<function=([^>\s]+)>""")
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
    calls = [found for found in CALL.finditer(text) if _is_call(found[1])] if role == "assistant" else []
    edges = [0, *(edge for found in calls for edge in found.span()), len(text)]
    said = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    reading.say(role, said.strip() if calls else text)
    for found in calls:
        _read_calls(found[1], reading)


def _is_call(text: str) -> bool:
    """Return whether a tagged text is data; else somebody writes about the tags."""
    return text.startswith(("{", "[", "<function="))


def _read_calls(value: Any, reading: Reading) -> None:
    """Read one call, a list of calls, or the JSON text of either; else the text is a call as it stands."""
    data = _data(value)
    for item in data if isinstance(data, list) else [data]:
        inner = item.get("function", item) if isinstance(item, dict) else item
        if not isinstance(inner, dict):
            named = NAME.search(inner) if isinstance(inner, str) else None
            reading.call(make_call(name=(named[1] or named[2]) if named else "", arguments=inner))
            continue
        arguments = next((inner[name] for name in ARGUMENTS if name in inner), None)
        reading.call(make_call(id=item.get("id"), name=name_of(inner), arguments=arguments))


def _read_results(value: Any, reading: Reading, name: Any) -> None:
    tagged = list(RESPONSE.finditer(value)) if isinstance(value, str) else []
    for number, found in enumerate(tagged):
        response, data = found[1], _data(found[1])
        if around := _around(value, tagged, number):
            response = f"{response}\n{around}"
            data = (
                data | {"content": f"{as_text(data['content']).text}\n{around}"} if _is_answer(data) else data
            )
        if _is_answer(data):
            reading.result(data["content"], name=data["name"], call_id=data.get("tool_call_id"))
        else:
            reading.result(response, name=name)
    if not tagged:
        reading.result(value, name=name)


def _is_answer(data: Any) -> bool:
    return isinstance(data, dict) and isinstance(data.get("name"), str) and "content" in data


def _around(text: str, tagged: list[re.Match[str]], number: int) -> str:
    """Return what stands behind a tagged response, up to the next; with the first, also what is before."""
    before = text[: tagged[0].start()].strip() if number == 0 else ""
    end = tagged[number + 1].start() if number + 1 < len(tagged) else len(text)
    return "\n".join(part for part in (before, text[tagged[number].end() : end].strip()) if part)


def _data(value: Any) -> Any:
    return parsed(value, may_be_python=True) if isinstance(value, str) else value


FAMILY = Family(
    name="sharegpt",
    matches=matches,
    read=read,
)
