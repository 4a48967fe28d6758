"""What a tool's result says beside its content, in fields that no family of shapes reads.

Nobody knows all the names under which tools and their clients put a warning, `stderr` or the result itself.
So that no words are lost, what such a field holds is told behind the content; what is an id, a time, a
setting or the call once more is not.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from conversations.extraction.content import as_json, as_text

NO_WORDS = frozenset(
    {
        *("id", "tool_call_id", "call_id", "tool_use_id", "toolCallId", "toolUseId", "timestamp"),
        *(
            "role",
            "type",
            "kind",
            "part_kind",
            "object",
            "name",
            "tool_name",
            "toolName",
            "toolType",
            "model",
        ),
        *(
            "status",
            "state",
            "outcome",
            "success",
            "ok",
            "is_error",
            "isError",
            "index",
            "dynamic",
            "preliminary",
        ),
        *("content", "args", "arguments", "input", "rawInput", "tool_calls", "function_call", "tool_type"),
        *("metadata", "meta", "_meta", "usage", "annotations", "citations", "created", "date", "duration"),
        *("cache_control", "cacheControl", "caller", "audio", "stop_details", "finish_reason", "format"),
        *("additional_kwargs", "response_metadata", "extra_content", "providerMetadata", "providerOptions"),
        *("callProviderMetadata", "resultProviderMetadata", "experimental_providerMetadata", "namespace"),
        *("artifact", "details", "structuredContent", "title", "server_label", "server_name", "execution"),
        *("willContinue", "scheduling", "acknowledged_safety_checks", "trace", "origin"),
    }
)
"""Fields beside a result's content that never are words of the tool, or are left out on purpose."""
OUTPUTS = frozenset(
    {
        *(
            "stdout",
            "stderr",
            "output",
            "outputs",
            "result",
            "results",
            "response",
            "text",
            "message",
            "logs",
        ),
        *("error", "errors", "error_message", "errorText", "exception", "traceback", "warning", "warnings"),
        *("reason", "note", "notes", "hint"),
    }
)
"""Fields whose name alone says that what they hold is the tool's, were it one word."""
NAME = re.compile(
    r"(^|_)(ids?|at|key|version|time|timestamp)$|[a-z](Ids?|At|Key|Version|Time|Timestamp)$|^encrypted_"
)


def rest_of(holder: dict[str, Any], text: str, read: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a result that hold words beyond `text`, its content; `read` names those read.

    Beside content, a field of an unknown name counts from two words on: one word may be any setting. Where
    there is no content, whatever is there is all that the tool gave.
    """
    strangers = [key for key in holder if key not in NO_WORDS and key not in read]
    if not strangers:
        return {}
    is_all = not text.strip()
    return {
        key: holder[key]
        for key in strangers
        if not NAME.search(key)
        and _holds_words(holder[key], is_named=is_all or key in OUTPUTS)
        and (is_all or as_text(holder[key]).text not in text)
    }


def as_lines(rest: dict[str, Any]) -> list[str]:
    """Return what is told of such fields: an error by itself, all else with its name."""
    more = {key: value for key, value in rest.items() if key != "error"}
    return [*([as_text(rest["error"]).text] if "error" in rest else []), *([as_json(more)] if more else [])]


def _holds_words(value: Any, *, is_named: bool) -> bool:
    if isinstance(value, str):
        return len(value.split(maxsplit=1)) >= (1 if is_named else 2)
    if not isinstance(value, list | dict):
        return False
    if is_named:
        return bool(value)
    inside = (
        value if isinstance(value, list) else [item for key, item in value.items() if key not in NO_WORDS]
    )
    return any(_holds_words(item, is_named=False) for item in inside)
