"""Base64 in places where no shape announces it: found, and replaced by what it is and how large.

A transcript is for reading. Tools return images inside JSON, callers paste data URLs into text, and
providers sign their reasoning; none of it teaches anything, and any of it may be megabytes.
"""

from __future__ import annotations

import re
from typing import Any

MIN_RUN_CHARS = 400
MIN_FIELD_CHARS = 200
MIN_DIFFERENT_CHARS = 24
MAX_URL_CHARS = 200
DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<options>[^,]*),(?P<data>.*)", re.DOTALL)
DATA_URL_IN_TEXT = re.compile(
    r"data:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*;base64,(?P<data>[A-Za-z0-9+/_%=\\-]{64,})"
)
RUN = re.compile(
    rf"""
    (?<! [A-Za-z0-9+/_-] )
    (?: [A-Za-z0-9+/_-]{{{MIN_RUN_CHARS},}}
      | [A-Za-z0-9+/]{{60,}} (?: (?: \r?\n | (?:\\r)?\\n ) [A-Za-z0-9+/]{{60,}} ){{3,}}
        (?: (?: \r?\n | (?:\\r)?\\n ) [A-Za-z0-9+/]+ )?
    ) ={{0,2}}
    """,
    re.VERBOSE,
)
WHOLE = re.compile(r"[A-Za-z0-9+/_\s-]+={0,2}\s*")
MAGIC = ("iVBORw0KGgo", "/9j/", "JVBERi0", "R0lGOD", "UklGR", "UEsDB", "SUQz", "T2dnUw", "AAAA")
DATA_KEYS = frozenset({"data", "bytes", "base64", "b64_json", "blob", "file_data", "fileData", "image_data"})
OPAQUE_KEYS = frozenset({"signature", "thoughtSignature", "thought_signature", "fingerprint"})
CACHE_KEYS = frozenset({"cache_control", "cacheControl"})
MIN_OPAQUE_CHARS = 40
OPAQUE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def scrub(text: str) -> str:
    """Return `text` with data URLs and long runs of base64 replaced by placeholders."""
    if len(text) < 64:
        return text
    if "base64," in text:
        text = DATA_URL_IN_TEXT.sub(_of_data_url, text)
    return RUN.sub(_of_run, text) if len(text) >= 4 * 60 else text


def _of_data_url(found: re.Match[str]) -> str:
    kind = (found["type"] or "").partition("/")[0]
    kind = kind if kind in ("image", "audio", "video") else "file"
    return placeholder(kind, found["data"], media_type=found["type"] or "")


def _of_run(found: re.Match[str]) -> str:
    run = found.group()
    return placeholder("data", run) if _looks_encoded(run) else run


def _looks_encoded(run: str) -> bool:
    if run.startswith(MAGIC):
        return True
    kinds = (str.islower, str.isupper, str.isdigit)
    different = set(run)
    return len(different) >= MIN_DIFFERENT_CHARS and all(any(map(kind, different)) for kind in kinds)


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

    By key and look, for callers have fields of these names too, with words in them.
    """
    if key in CACHE_KEYS:
        return isinstance(item, dict)
    if key not in OPAQUE_KEYS and not key.startswith("encrypted_"):
        return False
    return isinstance(item, str) and len(item) >= MIN_OPAQUE_CHARS and OPAQUE.fullmatch(item) is not None


def _field(key: str, item: Any) -> Any:
    if key in DATA_KEYS and isinstance(item, str) and len(item) >= MIN_FIELD_CHARS and WHOLE.fullmatch(item):
        return placeholder("data", item) if " " not in item else scrub(item)
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
