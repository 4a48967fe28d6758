"""Amazon Bedrock's Converse parts: no type, one key that tells what a part is."""

from __future__ import annotations

from typing import Any

from conversations.extraction.anthropic import left_out
from conversations.extraction.calls import make_call
from conversations.extraction.content import as_text
from conversations.extraction.payloads import placeholder
from conversations.extraction.reading import Family, PartReader, Reading
from conversations.extraction.types import Role


def _call(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    call = _inside(part, "toolUse")
    reading.call(make_call(id=call.get("toolUseId"), name=call.get("name"), arguments=call.get("input")))


def _result(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    result = _inside(part, "toolResult")
    status = result.get("status")
    reading.result(
        _content(result.get("content")),
        call_id=result.get("toolUseId"),
        is_error={"error": True, "success": False}.get(status) if isinstance(status, str) else None,
        holder=result,
    )


def _content(content: Any) -> Any:
    """Return the content of a result in words: its parts have no type either."""
    if not isinstance(content, list):
        return content
    return "\n".join(text for text in map(_text_of, content) if text)


def _text_of(part: Any) -> str:
    if isinstance(part, dict):
        if "json" in part:
            return as_text(part["json"]).text
        for kind in MEDIA:
            if isinstance(part.get(kind), dict):
                return _stand_in(kind, part[kind])
    return as_text(part).text


def _media(kind: str) -> PartReader:
    def read(part: dict[str, Any], reading: Reading, role: Role) -> None:
        reading.say(role, _stand_in(kind, _inside(part, kind)))

    return read


def _stand_in(kind: str, medium: dict[str, Any]) -> str:
    """Return the text of a document that is given as text; else the placeholder of the medium."""
    source = _inside(medium, "source")
    if isinstance(source.get("text"), str):
        return str(source["text"])
    if source.get("content"):
        return as_text(source["content"]).text
    data = source.get("bytes") or _inside(source, "s3Location").get("uri")
    name, media_type = medium.get("name"), medium.get("format")
    return placeholder(
        kind,
        data if isinstance(data, str) else "",
        name=name if isinstance(name, str) else "",
        media_type=media_type if isinstance(media_type, str) else "",
    )


def _inside(part: dict[str, Any], key: str) -> dict[str, Any]:
    inner = part.get(key)
    return inner if isinstance(inner, dict) else {}


def _cited(part: dict[str, Any], reading: Reading, role: Role) -> None:
    reading.content(role, _inside(part, "citationsContent").get("content"))


def _guarded(part: dict[str, Any], reading: Reading, role: Role) -> None:
    """Read what a guardrail shall look at, which is said like all else."""
    guarded = _inside(part, "guardContent")
    text = _inside(guarded, "text").get("text")
    if isinstance(text, str):
        reading.say(role, text)
    elif guarded:
        reading.content(role, guarded)
    else:
        reading.unknown(role, "guardContent")


MEDIA = ("image", "document", "video", "audio")

FAMILY = Family(
    name="bedrock",
    keys={
        "toolUse": _call,
        "toolResult": _result,
        "reasoningContent": left_out("reasoning"),
        "cachePoint": left_out("notice"),
        "citationsContent": _cited,
        "guardContent": _guarded,
        **{kind: _media(kind) for kind in MEDIA},
    },
)
