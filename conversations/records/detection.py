"""What a JSON value is: a record, which holds a session, or a message or line of a log, part of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.extraction.agent_events import is_recorded_call
from conversations.extraction.content import json_type
from conversations.extraction.families import family_of
from conversations.extraction.langsmith import runs_of
from conversations.records import langsmith
from conversations.records.names import HEADERS, MESSAGES, MOMENTS, RECORD_IDS, SESSION_IDS, WRAPPERS

MAX_WRAPPERS = 3
KEYS_SHOWN = 5
ID_TYPES = (str, int)


class Broken(Exception):
    """A value that is neither record nor message, and why."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One recorded session as its source has it; nothing in it is checked but types."""

    messages: list[Any]
    session_id: str = ""
    """Empty where the source names none."""
    session_tag: str = ""
    filter_tags: dict[str, Any] = field(default_factory=dict)
    occurred_at: str = ""
    is_dated_loosely: bool = False
    """True when `occurred_at` stood under another name, and means something only where it is a date."""
    line: int = 0
    position: int = 0
    """Which of its source's records it is, from 1; 0 for a session put together from all of the source."""
    is_unnamed: bool = False
    """True when the source names no id, and this one was made."""


@dataclass(frozen=True, kw_only=True)
class Element:
    """A message or line of a log by itself; `session_id` is empty where it names none."""

    value: Any
    session_id: str = ""
    is_known: bool = True
    """False for what may stand in a log, but is no message that anybody knows."""


def sessions_in(value: Any) -> list[Any] | None:
    """Return the sessions that an export lists, in a list or an object around it; None for what is none."""
    layers = list(_layers(value)) if isinstance(value, dict) else [value]
    for layer in layers:
        items = messages_of(layer) if isinstance(layer, dict) and family_of(layer) is None else layer
        if isinstance(items, list) and _are_sessions(items):
            return items
    return None


def _are_sessions(items: list[Any]) -> bool:
    """Return whether objects hold messages rather than are some."""
    return (
        bool(items)
        and all(isinstance(item, dict) and family_of(item) is None for item in items)
        and any(messages_of(item) for item in items)
    )


def detect(value: Any) -> Record | Element:
    """Return what a value of a source is; raises `Broken`."""
    if isinstance(value, list) and not is_recorded_call(value):
        if not value:
            raise Broken("expected a session, got an empty list")
        return Record(messages=value)
    if not isinstance(value, dict):
        return Element(value=value, is_known=is_recorded_call(value))
    layers = list(_layers(value))
    for layer in layers:
        if isinstance(layer, list):
            return _record(layers, layer)
        if runs := runs_of(layer):
            own = _text(layers[:1], SESSION_IDS) if layer is not value else ""
            return Element(value=layer, session_id=own or langsmith.session_of(runs))
        if (messages := messages_of(layer)) is not None and family_of(layer) is None:
            return _record(layers, messages)
    innermost = layers[-1]
    if family_of(innermost) is None and _is_named(layers):
        raise Broken(_no_messages(layers))
    return Element(
        value=innermost,
        session_id=_session_of_line(innermost) or _text(layers, SESSION_IDS),
        is_known=family_of(innermost) is not None,
    )


def _layers(value: dict[str, Any]) -> Iterator[Any]:
    """Yield a value and what it is wrapped around, outermost first."""
    layer: Any = value
    for _ in range(MAX_WRAPPERS):
        yield layer
        if not isinstance(layer, dict) or messages_of(layer) is not None:
            return
        inner = layer.get("message")
        if isinstance(inner, dict) and inner.get("type") == layer.get("type"):
            layer = inner
            continue
        if family_of(layer) is not None:
            return
        found = (layer[name] for name in WRAPPERS if isinstance(layer.get(name), dict | list) and layer[name])
        layer = next(found, None)
        if layer is None:
            return


def messages_of(layer: dict[str, Any]) -> list[Any] | None:
    """Return the messages that an object holds, by the first of the known names that is a list."""
    lists = [layer[name] for name in MESSAGES if isinstance(layer.get(name), list)]
    return next((messages for messages in lists if messages), lists[0] if lists else None)


def _record(layers: list[Any], messages: list[Any]) -> Record:
    objects = [layer for layer in layers if isinstance(layer, dict)]
    _check_ids(objects)
    record = Record(
        messages=messages + _replies(objects),
        session_id=_text(objects, RECORD_IDS),
        session_tag=_field(objects, "session_tag", str) or "",
        filter_tags=_field(objects, "filter_tags", dict) or {},
        occurred_at=_field(objects, "occurred_at", str) or "",
    )
    if record.occurred_at:
        return record
    return replace(record, occurred_at=moment_of(objects[0] if objects else None), is_dated_loosely=True)


def _replies(objects: list[dict[str, Any]]) -> list[Any]:
    """Return the reply that stands beside a request whose messages were found."""
    pairs = (layer for layer in objects if isinstance(layer.get("request"), dict))
    replies = (layer.get("response") for layer in pairs if messages_of(layer) is None)
    return [reply for reply in replies if family_of(reply) is not None]


def moment_of(value: Any) -> str:
    """Return when a value says it happened, under any of the known names."""
    return _text([value], MOMENTS, types=(str,)) if isinstance(value, dict) else ""


def _text(objects: list[Any], names: tuple[str, ...], types: tuple[type, ...] = ID_TYPES) -> str:
    """Return the first text or number of some objects under any of some names."""
    for layer in objects:
        for name in names if isinstance(layer, dict) else ():
            value = layer.get(name)
            if isinstance(value, types) and not isinstance(value, bool) and str(value).strip():
                return str(value)
    return ""


def _field(objects: list[dict[str, Any]], name: str, kind: type) -> Any:
    for layer in objects:
        if (value := layer.get(name)) is not None:
            if not isinstance(value, kind):
                raise Broken(f"{name}: must be {json_type(kind())}, not {json_type(value)}")
            return value
    return None


def _check_ids(objects: list[dict[str, Any]]) -> None:
    for layer in objects:
        for name in SESSION_IDS:
            value = layer.get(name)
            if isinstance(value, bool | float | list | dict):
                raise Broken(f"{name}: must be a string or a whole number, not {json_type(value)}")


def _no_messages(layers: list[Any]) -> str:
    for name in MESSAGES:
        if isinstance(layers[0], dict) and name in layers[0]:
            return f"{name}: must be a list, not {json_type(layers[0][name])}"
    return f"messages: missing; expected a list under one of {', '.join(MESSAGES)}"


def _is_named(layers: list[Any]) -> bool:
    return isinstance(layers[0], dict) and bool(_text(layers[:1], SESSION_IDS))


def _session_of_line(line: Any) -> str:
    """Return the session that a line of a log names: as its header, or as a talk beside the main one."""
    if not isinstance(line, dict):
        return ""
    for kind, holder, name in HEADERS:
        if line.get("type") == kind:
            return _text([line.get(holder) if holder else line], (name,))
    own = _text([line], SESSION_IDS)
    if line.get("isSidechain") is True:
        agent = _text([line], ("agentId",)) or "sidechain"
        return f"{own}/{agent}"
    return own


def unknown(value: Any) -> str:
    """Return the reason why a value is neither record nor message."""
    expected = "expected a session, which is an object with messages, or a message"
    if not isinstance(value, dict):
        return f"{expected}, got {json_type(value)}"
    keys = ", ".join(f"“{key[:64]}”" for key in list(value)[:KEYS_SHOWN]) or "nothing"
    return f"{expected}, got an object with {keys}"
