"""OpenAI Responses items: elements without a role, told by their `type`.

Calls of functions and their outputs are items of their own. The provider's tools (`web_search_call`, …)
are one item for the call and what it gave; all of them are read alike, by the fields that they share.
"""

from __future__ import annotations

import json
from typing import Any

from conversations.extraction.anthropic import left_out, output_of
from conversations.extraction.calls import make_call
from conversations.extraction.content import MAX_KIND_CHARS, REASONING_TYPES, as_text
from conversations.extraction.errors import truth
from conversations.extraction.payloads import placeholder
from conversations.extraction.reading import Family, PartReader, Reading, find_reader
from conversations.extraction.types import Role

FAILED = ("failed", "incomplete", "error")


def matches(item: dict[str, Any]) -> bool:
    """Items of a known type; those with a role are messages."""
    return "role" not in item and _reader(item.get("type")) is not None


def read(item: dict[str, Any], reading: Reading) -> None:
    """Read one item."""
    if reader := _reader(item.get("type")):
        reader(item, reading, "assistant")


def _reader(kind: Any) -> PartReader | None:
    if not isinstance(kind, str):
        return None
    return ITEMS.get(kind) or find_reader(PARTS, kind[:MAX_KIND_CHARS])


def _call(item: dict[str, Any], reading: Reading, _role: Role) -> None:
    """Read a call, and what it gave where the item holds that as well."""
    kind = str(item["type"])
    name = item.get("name") or kind.removesuffix("_call")
    call_id = item.get("call_id") or item.get("id")
    arguments = _arguments(item)
    sources = None
    if isinstance(arguments, dict) and isinstance(arguments.get("sources"), list):
        sources = "\n".join(_source(source) for source in arguments["sources"])
        arguments = {key: value for key, value in arguments.items() if key != "sources"}
    reading.call(make_call(id=call_id, name=name, arguments=arguments))
    given = next((item[key] for key in RESULTS if item.get(key) is not None), sources)
    if kind == "image_generation_call" and isinstance(given, str):
        given = placeholder("image", given, media_type=str(item.get("output_format") or ""))
    failed = item.get("error") or (item.get("status") in FAILED and kind != "function_call")
    if failed and given is None:
        given = item.get("error") or item["status"]
    if given is not None:
        content, is_error = _output(given)
        reading.result(content, name=name, call_id=call_id, is_error=True if failed else is_error)


def _arguments(item: dict[str, Any]) -> Any:
    for key in ("arguments", "input", "args", "parameters", "action", "operation"):
        if item.get(key) is not None:
            return item[key]
    rest = {
        key: item[key] for key in ("code", "queries", "query", "prompt", "revised_prompt") if item.get(key)
    }
    return rest or None


def _source(source: Any) -> str:
    url = source.get("url") if isinstance(source, dict) else source
    return url if isinstance(url, str) else json.dumps(source)


def _result(item: dict[str, Any], reading: Reading, _role: Role) -> None:
    field = next((key for key in RESULTS if item.get(key) is not None), "")
    given, read = item.get(field), (field, "tools")
    if item.get("type") == "tool_search_output" and isinstance(item.get("tools"), list):
        names = [tool.get("name") for tool in item["tools"] if isinstance(tool, dict)]
        given = "\n".join(name for name in names if isinstance(name, str))
    content, is_error = _output(given)
    said = truth(item.get("is_error"))
    if said is not None:
        is_error = said
    elif item.get("error") or item.get("status") == "failed":
        is_error = True
    call_id = item.get("call_id")
    reading.result(content, name=item.get("name"), call_id=call_id, is_error=is_error, holder=item, read=read)


def _output(given: Any) -> tuple[Any, bool | None]:
    """Return an output and whether it tells of a failure; output of shells is a list of commands' outputs."""
    if not (isinstance(given, list) and given and all(_is_of_shell(item) for item in given)):
        return given, None
    outputs = [output_of(item | _exit_code(item)) for item in given]
    return "\n".join(text for text, _ in outputs if text), any(failed for _, failed in outputs)


def _is_of_shell(item: Any) -> bool:
    return isinstance(item, dict) and ("stdout" in item or "stderr" in item)


def _exit_code(item: dict[str, Any]) -> dict[str, Any]:
    outcome = item.get("outcome")
    if not isinstance(outcome, dict):
        return {}
    return {"exit_code": outcome.get("exit_code") if outcome.get("type") == "exit" else 1}


def _request(item: dict[str, Any], reading: Reading, _role: Role) -> None:
    """Read that approval was asked for: the call itself follows when it was given."""
    call = make_call(name=item.get("name"), arguments=item.get("arguments"))
    reading.say("assistant", f"[approval asked] {call.name} {call.text}".strip())


def _approval(item: dict[str, Any], reading: Reading, _role: Role) -> None:
    word, reason = "approved" if item.get("approve") else "denied", item.get("reason")
    reading.say("user", f"[{word}: {reason}]" if isinstance(reason, str) and reason else f"[{word}]")


def _said(role: Role) -> PartReader:
    def read_part_item(item: dict[str, Any], reading: Reading, _role: Role) -> None:
        reading.say(role, as_text(item).text)

    return read_part_item


RESULTS = ("output", "outputs", "result", "results")
PARTS: dict[str, PartReader] = {
    "program": _call,
    "mcp_approval_request": _request,
    "mcp_approval_response": _approval,
    "mcp_list_tools": left_out("tool list"),
    "additional_tools": left_out("tool list"),
    "item_reference": left_out("reference"),
    "compaction": left_out("compact summary"),
    "function_result": _result,
    "*_call": _call,
    "*_call_output": _result,
    "program_output": _result,
    "tool_search_output": _result,
    "*_search_result": _result,
}
ITEMS: dict[str, PartReader] = {
    **dict.fromkeys(REASONING_TYPES, left_out("reasoning")),
    **dict.fromkeys(("input_text", "input_image", "input_file", "input_audio"), _said("user")),
    **dict.fromkeys(("output_text", "refusal"), _said("assistant")),
}

FAMILY = Family(name="openai_responses", matches=matches, read=read, parts=PARTS)
