"""The content of a message: text and parts in, one text out.

What is not text becomes a placeholder that names type and size, `[image: image/png, 3.4 KB]`: a transcript
is for reading, and base64 is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MAX_URL_CHARS = 200
REASONING_TYPES = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<options>[^,]*),(?P<data>.*)", re.DOTALL)


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
    return f"[unknown content part “{kind}”, left out]"


def kind_of(part: Any) -> str:
    """Return what a part calls itself; for a part without a type, what it looks like."""
    if part is None or isinstance(part, str):
        return "text"
    if not isinstance(part, dict):
        return json_type(part)
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind[:64]
    return "text" if isinstance(part.get("text"), str) else "object without a type"


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


def _media(kind: str, *fields: str) -> Callable[[dict[str, Any]], str]:
    """Return a reader for parts that hold a `kind` of media in one of `fields`, as URL, data or object."""

    def read(part: dict[str, Any]) -> str:
        source = next((part[field] for field in fields if part.get(field)), None)
        details = source if isinstance(source, dict) else part
        if isinstance(source, dict):
            source = next((source[key] for key in ("url", "data", "file_data") if source.get(key)), None)
        return placeholder(
            kind,
            source if isinstance(source, str) else "",
            name=_first(details, "filename", "name", "title") or _first(details, "file_id", "id"),
            media_type=_first(details, "media_type", "mime_type", "mimeType", "format"),
        )

    return read


def _first(part: dict[str, Any], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := part.get(key), str) and value), "")


def placeholder(kind: str, source: str, *, name: str = "", media_type: str = "") -> str:
    """Return what stands for a medium in the text; `source` is a URL, a data URL or bare base64."""
    size = where = ""
    if found := DATA_URL.match(source):
        media_type = found["type"] or media_type
        data = found["data"]
        size = _size(_decoded_length(data) if "base64" in found["options"] else len(data))
    elif "://" in source[:32]:
        where = source.split("?", 1)[0].split("#", 1)[0][:MAX_URL_CHARS]  # a query may hold credentials
    elif source:
        size = _size(_decoded_length(source))
    about = ", ".join(item for item in (name[:MAX_URL_CHARS], media_type[:64], where, size) if item)
    return f"[{kind}: {about}]" if about else f"[{kind}]"


def _decoded_length(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _size(length: int) -> str:
    if length < 1024:
        return f"{length} B"
    return f"{length / 1024:.1f} KB" if length < 1024 * 1024 else f"{length / 1024 / 1024:.1f} MB"


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
    """Read what a tool returned: as `read_content`, and any other JSON value as its JSON text."""
    read = read_content(content)
    if not read.unknown:
        return read
    return Content(text=json.dumps(content, ensure_ascii=False))


PARTS: dict[str, Callable[[dict[str, Any]], str | None]] = {
    "text": _read_text,
    "input_text": _read_text,
    "output_text": _read_text,
    "refusal": _read_text,
    "image": _media("image", "image", "source", "data", "url"),
    "image_url": _media("image", "image_url"),
    "input_image": _media("image", "image_url"),
    "image_file": _media("image", "image_file"),
    "audio": _media("audio", "audio", "source", "data"),
    "input_audio": _media("audio", "input_audio"),
    "audio_url": _media("audio", "audio_url"),
    "video": _media("video", "video", "source", "data"),
    "video_url": _media("video", "video_url"),
    "file": _media("file", "file", "source", "data"),
    "input_file": _media("file", "file_data", "file_url"),
    "document": _media("document", "source", "document", "data"),
    "document_url": _media("document", "document_url"),
}
