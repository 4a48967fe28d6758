"""What a person could read in a message, found by walking its JSON: no shape is known here.

Every string counts, except under keys that hold settings, names of kinds, ids and the like, and except inside
of objects that call themselves reasoning, system text or lists of tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

NOT_FOR_READING = {
    *("type", "role", "model", "object", "status", "state", "format", "language", "mode", "detail", "phase"),
    *("url", "uri", "fileUri", "file_uri", "data", "bytes", "image_url", "video_url", "document_url"),
    *("file_data", "file_url", "b64_json", "format", "mimeType", "mime_type", "media_type", "output_format"),
    *(
        "usage",
        "usageMetadata",
        "usage_breakdown",
        "tools",
        "tool_choice",
        "tool_usage",
        "metadata",
        "billing",
    ),
    *("annotations", "citations", "logprobs", "groundingMetadata", "search_results", "page_age", "tool_type"),
    *("signature", "thoughtSignature", "thought_signature", "fingerprint", "cache_control", "cachePoint"),
    *("reasoning", "reasoning_content", "reasoning_details", "reasoningContent", "thinking", "instructions"),
    *("created", "updated", "headers", "stop_reason", "stop_sequence", "finish_reason", "finishReason"),
    *("service_tier", "system_fingerprint", "container", "context_management", "environment", "caller"),
    *("moderation", "truncation", "prompt_cache_retention", "extra_content", "x_groq", "namespace"),
    *("server_label", "server_name", "execution", "outcome", "retrieved_at", "size", "quality", "background"),
    *(
        "verbosity",
        "effort",
        "filename",
        "custom_metadata",
        "file_search_store",
        "videoMetadata",
        "video_metadata",
    ),
    *(
        "finishMessage",
        "task",
        "action_type",
        "message_type",
        "agent",
        "prompt_cache_key",
        "safety_identifier",
    ),
    *(
        "segments",
        "words",
        "stop_details",
        "search_type",
        "modelVersion",
        "safetyRatings",
        "incomplete_details",
    ),
}
LEFT_OUT_TYPES = {"thinking", "redacted_thinking", "reasoning", "thought", "compaction", "mcp_list_tools"}
LEFT_OUT_ROLES = {"system", "developer"}
THOUGHTS = re.compile(r"\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)
BASE64 = re.compile(r"[A-Za-z0-9+/.]{24,}={0,2}")


def readable(value: Any, *, leaving: Collection[str] = ()) -> Iterator[str]:
    """Yield the strings of a message that hold a word, in order, but those under the keys `leaving`."""
    if isinstance(value, str):
        text = THOUGHTS.sub("", value)
        if any(letter.isalnum() for letter in text) and not BASE64.fullmatch(text):
            yield text
    elif isinstance(value, list):
        for item in value:
            yield from readable(item, leaving=leaving)
    elif isinstance(value, dict) and not is_left_out(value):
        for name, item in value.items():
            if name not in NOT_FOR_READING and name not in leaving and not is_name(name):
                yield from readable(item, leaving=leaving)


def is_name(key: str) -> bool:
    """Whether a key holds an id, a time, or something for the provider alone."""
    return bool(re.search(r"^id$|(_id|Id|_ids|_at|_key|_version)$|^encrypted_", key))


def is_left_out(value: dict[str, Any]) -> bool:
    """Whether an object says of itself that it belongs in no turn."""
    return (
        value.get("type") in LEFT_OUT_TYPES
        or value.get("role") in LEFT_OUT_ROLES
        or value.get("thought") is True
    )


def is_told(text: str, turns: str) -> bool:
    """Whether a string is in the text of the turns, as it is or as a JSON string."""
    return text.strip() in turns or json.dumps(text, ensure_ascii=False)[1:-1] in turns
