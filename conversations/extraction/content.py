"""The content of a message: text and parts in, one text out.

What is not text becomes a placeholder that names type and size, `[image: image/png, 3.4 KB]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conversations.extraction.payloads import placeholder, plain, scrub

REASONING_TYPES = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "reasoning_content", "reasoning_text", "thought"}
)
MAX_KIND_CHARS = 64
MARKER_START, MARKER_END = "[unknown content part “", "”, left out]"
THOUGHT = re.compile(r"\s*(?P<open>[<\[])(?P<tag>think|thinking|reasoning|THINK)[>\]]")
UNOPENED = re.compile(r"(?:(?<=\n)|(?<=[^\s`\"'(]))</think>(?![`\"'.,;:)?!])")
"""The end of thoughts that a template began in the prompt; not as prose names it."""
HARMONY = re.compile(
    r"<\|channel\|>\s*+(?P<channel>\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
    r"(?P<text>(?:[^<]++|<(?!\|(?:end|return|call|start|channel)\|>))*+)"
)
"""One message of a reply whose markers of channels were left in, as models of the gpt-oss kind write them."""


@dataclass(frozen=True, kw_only=True)
class Content:
    """What content without any tool activity says."""

    text: str = ""
    unknown: tuple[str, ...] = ()
    """Types of parts that nobody here knows; a marker stands for each in the text."""


def read_content(content: Any) -> Content:
    """Read a string, a part, a list of parts or nothing; everything else is an unknown part."""
    texts: list[str] = []
    unknown: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind = kind_of(part)
        if kind in REASONING_TYPES:
            continue
        if (text := read_part(part, kind)) is None:
            unknown.append(kind)
            texts.append(marker(kind))
        elif text:
            texts.append(text)
    return Content(text="\n".join(texts), unknown=tuple(unknown))


def marker(kind: str) -> str:
    """Return what stands for a part that nobody here knows."""
    return f"{MARKER_START}{kind}{MARKER_END}"


def is_marker(text: str) -> bool:
    """Return whether a line of a turn is such a marker."""
    return text.startswith(MARKER_START) and text.endswith(MARKER_END)


def kind_of(part: Any) -> str:
    """Return what a part calls itself; for a part without a type, what it looks like."""
    if part is None or isinstance(part, str):
        return "text"
    if not isinstance(part, dict):
        return json_type(part)
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind[:MAX_KIND_CHARS]
    if isinstance(part.get("text"), str):
        return "thought" if part.get("thought") is True else "text"
    return "object without a type"


def read_part(part: Any, kind: str) -> str | None:
    """Return the text of one part; None when it cannot be read."""
    if part is None or isinstance(part, str):
        return part or ""
    reader = PARTS.get(kind)
    return reader(part) if reader and isinstance(part, dict) else None


def _read_text(part: dict[str, Any]) -> str | None:
    text = part.get("text", part.get("refusal", ""))
    if isinstance(text, dict):
        text = text.get("value")
    if text is None:
        return ""
    return text if isinstance(text, str) else None


def _text_in(*fields: str) -> Callable[[dict[str, Any]], str]:
    """Return a reader for parts that hold text, or data to be read as text, in one of `fields`."""

    def read(part: dict[str, Any]) -> str:
        return as_text(next((part[field] for field in fields if part.get(field)), "")).text

    return read


def media(kind: str, *fields: str) -> Callable[[dict[str, Any]], str]:
    """Return a reader for parts that hold a `kind` of media in one of `fields`, as URL, data or object."""

    def read(part: dict[str, Any]) -> str:
        source = next((part[field] for field in fields if part.get(field)), None)
        details = source if isinstance(source, dict) else part
        if isinstance(source, dict):
            source = next((source[key] for key in SOURCE_KEYS if source.get(key)), None)
        return placeholder(
            kind,
            source if isinstance(source, str) else "",
            name=_first(details, *NAME_KEYS) or _first(part, *NAME_KEYS) or _first(details, "file_id", "id"),
            media_type=_first(details, *TYPE_KEYS) or _first(part, *TYPE_KEYS),
        )

    return read


SOURCE_KEYS = ("url", "data", "file_data", "bytes", "uri", "fileUri", "file_uri")
NAME_KEYS = ("filename", "name", "title", "displayName", "display_name")
TYPE_KEYS = ("media_type", "mediaType", "mime_type", "mimeType", "contentType", "format")


def _first(part: dict[str, Any], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := part.get(key), str) and value), "")


def _spoken(*fields: str) -> Callable[[dict[str, Any]], str]:
    """Return a reader for parts that hold speech: its words where they are given, else a placeholder."""
    stand_in = media("audio", *fields)

    def read(part: dict[str, Any]) -> str:
        words = part.get("transcript")
        return words if isinstance(words, str) and words.strip() else stand_in(part)

    return read


_document = media("document", "source", "document", "data")


def _read_document(part: dict[str, Any]) -> str:
    """Read a document: its text where it is given as text, else a placeholder."""
    source = part.get("source", part.get("document"))
    if not isinstance(source, dict):
        return _document(part)
    match source.get("type"):
        case "text" if str(source.get("media_type") or "text/").startswith("text/"):
            return as_text(source.get("data", source.get("text"))).text
        case "content":
            return as_text(source.get("content")).text
        case None if "document" in part and not source.keys() & {"url", "media_type"}:
            return as_text(source.get("data")).text
    return _document(part)


def without_thoughts(text: str) -> str:
    """Return what a model said after the thoughts that it began with, `<think>…</think>`.

    Where it begins with a marker of channels, what it said on others than `analysis`.
    """
    if text.lstrip().startswith("<|") and (spoken := list(HARMONY.finditer(text))):
        said = (message["text"].strip() for message in spoken if message["channel"] != "analysis")
        return "\n\n".join(filter(None, said))
    start = 0
    while found := THOUGHT.match(text, start):
        start = _end_of_thought(text, found)
    if not start and "</think>" in text and (ended := UNOPENED.search(text)):
        start = ended.end() if "<think>" not in text[: ended.start()] else 0
    return text[start:].lstrip() if start else text


def _end_of_thought(text: str, found: re.Match[str]) -> int:
    """Return where a thought ends, with those inside of it; the end of the text where it is cut."""
    left, right = ("<", ">") if found["open"] == "<" else ("[", "]")
    opening, closing = f"{left}{found['tag']}{right}", f"{left}/{found['tag']}{right}"
    end = text.find(closing, found.end())
    inside = text.find(opening, found.end())
    while end >= 0 and 0 <= inside < end and (outer := text.find(closing, end + len(closing))) >= 0:
        end, inside = outer, text.find(opening, inside + len(opening))
    return len(text) if end < 0 else end + len(closing)


def json_type(value: Any) -> str:
    """Return what a JSON value is, in words for a report."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
    return type(value).__name__


def as_text(content: Any) -> Content:
    """Read what a tool returned: as `read_content`, and any other JSON value as its JSON text.

    An object that holds text among other things is data: none of it may be lost.
    """
    if is_tool_answer(content):
        content = content["content"]
    parts = content if isinstance(content, list) else [content]
    read = None if any(_is_data(part) for part in parts) else read_content(content)
    if read is None or read.unknown:
        return Content(text=as_json(content))
    return Content(text=scrub(read.text))


def as_json(value: Any) -> str:
    """Return data as text: a string as it is, all else as JSON."""
    return scrub(value) if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def is_tool_answer(value: Any) -> bool:
    """Return whether a value is what MCP's tools answer with: content, and whether it is an error."""
    return isinstance(value, dict) and isinstance(value.get("content"), list) and value.keys() <= ANSWER_KEYS


def _is_data(part: Any) -> bool:
    return isinstance(part, dict) and "text" in part and not part.get("type") and not part.keys() <= TEXT_KEYS


ANSWER_KEYS = frozenset({"content", "isError", "structuredContent", "_meta"})
TEXT_KEYS = frozenset(
    {"text", "annotations", "citations", "cache_control", "thought", "thoughtSignature", "thought_signature"}
)

PARTS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "text": _read_text,
    "input_text": _read_text,
    "output_text": _read_text,
    "refusal": _read_text,
    "summary_text": _read_text,
    "logs": _text_in("logs"),
    "search_result": _text_in("content"),
    "tool_reference": _text_in("tool_name", "title", "name"),
    "image": media("image", "image", "source", "data", "url"),
    "image_url": media("image", "image_url"),
    "input_image": media("image", "image_url"),
    "image_file": media("image", "image_file"),
    "computer_screenshot": media("image", "image_url"),
    "audio": _spoken("audio", "source", "data"),
    "input_audio": _spoken("input_audio", "audio"),
    "output_audio": _spoken("audio"),
    "audio_url": media("audio", "audio_url"),
    "video": media("video", "video", "source", "data"),
    "video_url": media("video", "video_url"),
    "input_video": media("video", "video_url"),
    "file": media("file", "file", "source", "data", "url"),
    "input_file": media("file", "file_data", "file_url"),
    **dict.fromkeys(
        ("container_upload", "code_execution_output", "bash_code_execution_output"), media("file", "file")
    ),
    "document": _read_document,
    "document_url": media("document", "document_url"),
}
