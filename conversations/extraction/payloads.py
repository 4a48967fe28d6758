"""Base64 in places where no shape announces it: found, and replaced by what it is and how large.

A transcript is for reading. Tools return images inside JSON, callers paste data URLs into text, and
providers sign their reasoning; none of it teaches anything, and any of it may be megabytes.
"""

from __future__ import annotations

import re
from typing import Any

from conversations.extraction.encoded import base64_from, is_base64, replace_base64

MIN_TEXT_CHARS = 64
MIN_FIELD_CHARS = 200
MIN_OPAQUE_CHARS = 40
MAX_URL_CHARS = 200
DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<options>[^,]*),(?P<data>.*)", re.DOTALL)
DATA_URL_IN_TEXT = re.compile(
    r"data:(?P<type>[\w.+-]+\\{0,3}/[\w.+-]+)?(?:;[\w.+=-]+)*;base64,(?=[A-Za-z0-9+/_%\\-]{40})"
)
WHOLE = re.compile(r"[A-Za-z0-9+/_\s-]+={0,2}\s*")
HEX = re.compile(r"(?=\D*\d)(?:[0-9a-f]+|[0-9A-F]+)")
BLANK = re.compile(r"\s+")
DATA_KEYS = frozenset({"data", "bytes", "base64", "b64_json", "blob", "file_data", "fileData", "image_data"})
OPAQUE_KEYS = frozenset({"signature", "thoughtSignature", "thought_signature", "fingerprint"})
CACHE_KEYS = frozenset({"cache_control", "cacheControl"})
CACHE_FIELDS = frozenset({"type", "ttl"})
OPAQUE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def scrub(text: str) -> str:
    """Return `text` with data URLs and what surely is base64 replaced by placeholders."""
    if len(text) < MIN_TEXT_CHARS:
        return text
    if "base64," in text:
        text = _without_data_urls(text)
    return replace_base64(text, _data)


def _data(run: str) -> str:
    return placeholder("data", run)


def _without_data_urls(text: str) -> str:
    pieces, done = [], 0
    while found := DATA_URL_IN_TEXT.search(text, done):
        media_type = (found["type"] or "").replace("\\", "")
        kind = media_type.partition("/")[0]
        kind = kind if kind in ("image", "audio", "video") else "file"
        data, end = base64_from(text, found.end())
        pieces += [text[done : found.start()], placeholder(kind, data, media_type=media_type)]
        done = end
    return "".join([*pieces, text[done:]])


def plain(value: Any) -> Any:
    """Return a JSON value without payloads, signatures and what is encrypted for the provider alone."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _field(key, item) for key, item in value.items() if not _is_for_the_provider(key, item)}
    return value


def _is_for_the_provider(key: str, item: Any) -> bool:
    """Return whether a field is a provider's own: a signature or what is encrypted, or where to cache.

    The name does not tell, for callers have fields of these names too. What is in them decides.
    """
    if key in CACHE_KEYS:
        return isinstance(item, dict) and item.get("type") == "ephemeral" and item.keys() <= CACHE_FIELDS
    return (
        (key in OPAQUE_KEYS or key.startswith("encrypted_"))
        and isinstance(item, str)
        and OPAQUE.fullmatch(item) is not None
        and is_base64(item, at_least=MIN_OPAQUE_CHARS, is_announced=True)
    )


def _field(key: str, item: Any) -> Any:
    if key in DATA_KEYS and isinstance(item, str) and len(item) >= MIN_FIELD_CHARS and WHOLE.fullmatch(item):
        data = BLANK.sub("", item)
        if is_base64(data, is_announced=True) or HEX.fullmatch(data):
            return placeholder("data", data)
    return plain(item)


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
