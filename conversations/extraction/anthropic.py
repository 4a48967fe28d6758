"""Anthropic's content blocks: calls, results, and the tools that run at the provider.

Messages themselves are `{"role", "content"}` and read as such; a result is a turn of its own, whatever
message it stands in. The results of server tools wrap what they found in an object per tool.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.content import as_json, as_text
from conversations.extraction.errors import truth
from conversations.extraction.reading import Family, PartReader, Reading
from conversations.extraction.rest import as_lines, rest_of
from conversations.extraction.types import Role


def _call(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    reading.call(make_call(id=part.get("id"), name=part.get("name"), arguments=part.get("input")))


def _result(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    content, is_error = unwrap(part.get("content"))
    said = truth(part.get("is_error"))
    reading.result(
        content,
        name=part.get("name"),
        call_id=part.get("tool_use_id"),
        is_error=is_error if said is None else said,
        holder=part,
    )


def unwrap(content: Any) -> tuple[Any, bool | None]:
    """Return what a server tool found, and whether it failed where its wrapping says so."""
    if isinstance(content, list) and content and all(_is_hit(item) for item in content):
        return "\n".join(_hit(item) for item in content), None
    if not isinstance(content, dict):
        return content, None
    kind = content.get("type")
    if content.get("error_code") or (isinstance(kind, str) and kind.endswith("_error")):
        said = content.get("error_message") or content.get("error_code")
        return (_with_rest(as_text(said).text, content, OF_ERROR) if said else content), True
    if "stdout" in content or "stderr" in content:
        return output_of(content)
    for key in ("content", "lines", "tool_references"):
        if content.get(key):
            inner = content[key]
            text = "\n".join(inner) if key == "lines" and _are_texts(inner) else as_text(inner).text
            where = content.get("url")
            return _with_rest(f"{where}\n{text}" if isinstance(where, str) else text, content, WRAPPED), None
    if isinstance(content.get("text"), str):
        return _with_rest(content["text"], content, WRAPPED), None
    rest = {key: value for key, value in content.items() if key not in ("type", "stop_reason", "content")}
    return ("" if rest.keys() <= FOR_THE_PROVIDER else rest), None


def _with_rest(text: str, content: dict[str, Any], read: Collection[str]) -> str:
    return "\n".join([text, *as_lines(rest_of(content, text, read))])


def output_of(content: dict[str, Any]) -> tuple[Any, bool | None]:
    """Return the output of a command, and whether its exit code tells of a failure."""
    texts = [content[key] for key in ("stdout", "stderr") if isinstance(content.get(key), str)]
    code = content.get("return_code", content.get("exit_code"))
    files = content.get("content")
    made = as_text([file for file in files if isinstance(file, dict)]).text if isinstance(files, list) else ""
    rest = {key: content[key] for key in content if key not in OF_OUTPUT and _holds_text(content[key])}
    text = "\n".join(part for part in (*texts, made, as_json(rest) if rest else "") if part.strip())
    return text, code != 0 if type(code) is int else None


def _holds_text(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list | dict):
        return any(map(_holds_text, value.values() if isinstance(value, dict) else value))
    return False


def _is_hit(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "web_search_result"


def _hit(item: dict[str, Any]) -> str:
    title, url, age = (item.get(key) if isinstance(item.get(key), str) else "" for key in HIT)
    return " ".join(word for word in (title, f"<{url}>" if url else "", f"({age})" if age else "") if word)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def left_out(kind: str) -> PartReader:
    """Return a reader of parts that are no part of the conversation and are counted as `kind`."""

    def read(_part: dict[str, Any], reading: Reading, _role: Role) -> None:
        reading.omit(kind)

    return read


FOR_THE_PROVIDER = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})
WRAPPED = ("content", "lines", "tool_references", "text", "url", "file_type", "stop_reason")
OF_ERROR = ("error_message", "error_code")
OF_OUTPUT = FOR_THE_PROVIDER | {
    *("type", "stdout", "stderr", "return_code", "exit_code", "content", "outcome", "status", "id"),
    *("created_by", "call_id"),
}
HIT = ("title", "url", "page_age")

FAMILY = Family(
    name="anthropic",
    parts={
        "tool_use": _call,
        "server_tool_use": _call,
        "mcp_tool_use": _call,
        "tool_result": _result,
        "*_tool_result": _result,
        "compaction": left_out("compact summary"),
        "fallback": left_out("notice"),
        "tool_addition": left_out("tool list"),
        "tool_removal": left_out("tool list"),
    },
)
