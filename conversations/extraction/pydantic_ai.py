"""Pydantic AI's own messages: `{"kind": "request" | "response", "parts": [{"part_kind": …}]}`."""

from __future__ import annotations

from typing import Any

from conversations.extraction.calls import make_call
from conversations.extraction.content import media
from conversations.extraction.reading import Family, PartReader, Reading
from conversations.extraction.types import Role

ROLES: dict[str, Role] = {"request": "user", "response": "assistant"}
MEDIA = ("image", "audio", "video", "document")


def matches(message: dict[str, Any]) -> bool:
    """Match requests and responses, told by their kind."""
    kind = message.get("kind")
    return isinstance(kind, str) and kind in ROLES and isinstance(message.get("parts"), list)


def read(message: dict[str, Any], reading: Reading) -> None:
    """Read the parts in order."""
    role = ROLES[message["kind"]]
    if message.get("instructions"):
        reading.omit("system")
    for part in message["parts"]:
        kind = part.get("part_kind") if isinstance(part, dict) else None
        reader = PARTS.get(kind) if isinstance(kind, str) else None
        if reader:
            reader(part, reading, role)
        else:
            reading.unknown(role, kind[:64] if isinstance(kind, str) else "part without a kind")


def _text(part: dict[str, Any], reading: Reading, role: Role) -> None:
    content = part.get("content")
    for item in content if isinstance(content, list) else [content]:
        kind = item.get("kind") if isinstance(item, dict) else None
        if isinstance(item, dict) and isinstance(kind, str) and (kind == "binary" or kind.endswith("-url")):
            reading.say(role, _medium(item, kind))
        else:
            reading.content(role, item)


def _medium(item: dict[str, Any], kind: str) -> str:
    name = (
        str(item.get("media_type") or "").partition("/")[0] if kind == "binary" else kind.removesuffix("-url")
    )
    return media(name if name in MEDIA else "file", "data", "url")(item)


def _thinking(_part: dict[str, Any], reading: Reading, _role: Role) -> None:
    reading.omit("reasoning")


def _system(_part: dict[str, Any], reading: Reading, _role: Role) -> None:
    reading.omit("system")


def _call(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    call_id = part.get("tool_call_id")
    reading.call(make_call(id=call_id, name=part.get("tool_name"), arguments=part.get("args")))


def _return(part: dict[str, Any], reading: Reading, _role: Role) -> None:
    failed = True if part.get("outcome") in ("failed", "denied") else None
    reading.result(
        part.get("content"),
        name=part.get("tool_name"),
        call_id=part.get("tool_call_id"),
        is_error=failed,
        holder=part,
    )


def _retry(part: dict[str, Any], reading: Reading, role: Role) -> None:
    """Read why a model has to try again: a failed call, or its answer as a whole."""
    if part.get("tool_name"):
        reading.result(
            part.get("content"), name=part["tool_name"], call_id=part.get("tool_call_id"), is_error=True
        )
    else:
        reading.content(role, part.get("content"))


PARTS: dict[str, PartReader] = {
    "system-prompt": _system,
    "user-prompt": _text,
    "text": _text,
    "file": _text,
    "thinking": _thinking,
    "tool-call": _call,
    "builtin-tool-call": _call,
    "tool-return": _return,
    "builtin-tool-return": _return,
    "retry-prompt": _retry,
}

FAMILY = Family(name="pydantic_ai", matches=matches, read=read)
