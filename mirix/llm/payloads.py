"""Finds the list that was asked for in a JSON value, however it is wrapped. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from mirix import strict_json
from mirix.llm.lenient_json import ELLIPSIS, Damaged, Exhausted, Reader

OTHER_NAMES = frozenset(
    {"experience", "lessons", "learnings", "memories", "items", "results", "result", "output", "response"}
    | {"answer", "data"}
)
"""What models call the list when they do not call it by its name."""
ARGUMENTS = ("arguments", "parameters", "input")
CALL_FIELDS = frozenset(("id", "index", "type", "name", "tool", "tool_name", "function", *ARGUMENTS))
CALLS = ("tool_calls", "function_call", "tool_call", "function")
MAX_LEVELS = 4
MAX_TEXT_WORK = 200_000

MAX_ITEMS = 1_000
"""More than that no list has that a model meant."""

NO_OBJECT = "not an object"
NO_FIELDS = "an object without fields"
LEFT_OUT = "left out by the model"
TOO_MANY = f"beyond the first {MAX_ITEMS} elements"


class Rank(IntEnum):
    """How surely a value is the list that was asked for."""

    NONE = 0
    OBJECT = 1
    LIST = 2
    NAMED = 3


@dataclass(kw_only=True)
class Payload:
    """The objects of a list, and what stood between them."""

    rank: Rank
    items: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[tuple[str, Any]] = field(default_factory=list)


def payload(value: Any, key: str) -> Payload:
    """Return what `value` lists: under `key`, under another name, bare, as one object, as a tool call.

    Null in the place of a list is an empty one. The rank is NONE where there is no list of objects.
    """
    if isinstance(value, str):
        value = decoded(value)
        if isinstance(value, str):
            return Payload(rank=Rank.NONE)
    if value is None:
        return Payload(rank=Rank.LIST)
    if isinstance(value, list):
        result = Payload(rank=Rank.LIST)
        gather(value, key, result)
        if not result.items and result.dropped:
            result.rank = Rank.NONE
        return result
    if not isinstance(value, dict):
        return Payload(rank=Rank.NONE)
    wrapped = unwrapped(value, key)
    if wrapped is not None:
        result = Payload(rank=Rank.NAMED)
        gather(wrapped, key, result)
        return result
    return Payload(rank=Rank.OBJECT, items=[value]) if value else Payload(rank=Rank.NONE)


def is_blank_list(value: Any) -> bool:
    """Return whether `value` is a list with nothing in it."""
    return isinstance(value, list) and not value


def gather(elements: list[Any], key: str, into: Payload, level: int = 0) -> None:
    """Sort the elements of a list into items and what is dropped; lists in the list count as part of it."""
    for number, element in enumerate(elements):
        if len(into.items) + len(into.dropped) >= MAX_ITEMS:
            into.dropped.append((TOO_MANY, f"{len(elements) - number} more"))
            return
        if isinstance(element, str) and element.lstrip().startswith(("{", "[")):
            element = decoded(element)
        if isinstance(element, list) and level < MAX_LEVELS:
            gather(element, key, into, level + 1)
        elif not isinstance(element, dict):
            into.dropped.append((LEFT_OUT if element == ELLIPSIS else NO_OBJECT, element))
        elif not element:
            into.dropped.append((NO_FIELDS, element))
        elif level < MAX_LEVELS and (wrapped := unwrapped(element, key)) is not None:
            gather(wrapped, key, into, level + 1)
        else:
            into.items.append(element)


def unwrapped(value: dict[str, Any], key: str, level: int = 0) -> list[Any] | None:
    """Return the elements that an object holds for another list; None where it is an element itself."""
    for name, inner in value.items():
        if name.strip().casefold() == key.casefold():
            return _as_list(inner)
    if level < MAX_LEVELS:
        if (called := _called(value, key, level)) is not None:
            return called
        for inner in value.values():
            if isinstance(inner, dict) and (found := unwrapped(inner, key, level + 1)) is not None:
                return found
    return _under_another_name(value)


def _as_list(value: Any) -> list[Any] | None:
    if isinstance(value, str):
        value = decoded(value)
    if value is None or value == {}:
        return []
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        # Either one item, or items by their numbers or names.
        every = list(value.values())
        return every if all(isinstance(item, dict) for item in every) else [value]
    return None


def _called(value: dict[str, Any], key: str, level: int) -> list[Any] | None:
    """Return what a tool call, or a message with tool calls, was to record."""
    for name in CALLS:
        calls = value.get(name)
        if isinstance(calls, dict):
            calls = [calls]
        if isinstance(calls, list):
            found = [
                element
                for call in calls
                if isinstance(call, dict)
                for element in unwrapped(call, key, level + 1) or ()
            ]
            if found:
                return found
    if value.keys() <= CALL_FIELDS and len(value) > 1:
        for name in ARGUMENTS:
            arguments = value.get(name)
            if isinstance(arguments, str):
                arguments = decoded(arguments)
            if isinstance(arguments, list):
                return arguments
            if isinstance(arguments, dict) and arguments:
                inner = unwrapped(arguments, key, level + 1)
                return [arguments] if inner is None else inner
    return None


def _under_another_name(value: dict[str, Any]) -> list[Any] | None:
    for name, inner in value.items():
        if not isinstance(inner, list):
            continue
        alone = len(value) == 1
        known = name.strip().casefold() in OTHER_NAMES
        objects = bool(inner) and all(isinstance(item, dict) for item in inner)
        if (objects and (alone or known)) or (alone and known and not inner):
            return inner
    return None


def decoded(text: str) -> Any:
    """Return the JSON that stands in a text as text; the text itself where it is none."""
    text = text.strip()
    if not text.startswith(("[", "{", "null")):
        return text
    try:
        return strict_json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        value, end = Reader(text, work=MAX_TEXT_WORK).value(0)
    except (Damaged, Exhausted):
        return text
    return text if text[end:].strip() else value
