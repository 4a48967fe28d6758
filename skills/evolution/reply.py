"""What a model answers about one topic, item by item: what it is asked for, and what is made of it. Pure.

What comes back is read kindly: a missing field is empty, a list may be a text. What then still does not fit
falls out with its reason and takes no other item along.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from mirix.text import clean_json, clean_text, shorten
from skills.distillation.attacks import without_invisible

SCHEMA_NAME = "operations"
MAX_OPERATIONS = 4
"""Of one answer; what goes beyond is dropped."""
MAX_TEXT_CHARS = 70_000
MAX_ENTRIES = 50
MAX_SHOWN_CHARS = 2_000
MAX_DEPTH = 20

Action = Literal["create", "edit", "none"]
Field = Literal["description", "instructions"]


class ReplacementItem(BaseModel):
    """Words of a field and what is to stand in their place."""

    model_config = ConfigDict(extra="forbid")

    field: Field
    old: str
    new: str


class SupersededItem(BaseModel):
    """A lesson, and the newer one that takes its place."""

    model_config = ConfigDict(extra="forbid")

    old: str
    by: str


class OperationItem(BaseModel):
    """One operation as the model tells it."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    skill: str
    experiences: list[str]
    name: str
    description: str
    instructions: str
    triggers: list[str]
    replacements: list[ReplacementItem]
    superseded: list[SupersededItem]
    reason: str


def reply_schema() -> dict[str, Any]:
    """Return the JSON schema of a whole answer: every field required, no references, no limits."""
    text = {"type": "string"}
    texts = {"type": "array", "items": text}
    replacement = _object(
        {"field": {"type": "string", "enum": list(get_args(Field))}, "old": text, "new": text}
    )
    operation = {
        "action": {"type": "string", "enum": list(get_args(Action))},
        "skill": text,
        "experiences": texts,
        "name": text,
        "description": text,
        "instructions": text,
        "triggers": texts,
        "replacements": {"type": "array", "items": replacement},
        "superseded": {"type": "array", "items": _object({"old": text, "by": text})},
        "reason": text,
    }
    return _object({SCHEMA_NAME: {"type": "array", "items": _object(operation)}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_item(item: dict[str, Any]) -> OperationItem | str:
    """Return the operation that an item is, or why it is none, in words that hold nothing of the model's."""
    try:
        return OperationItem.model_validate(_straightened(item))
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in found["loc"])
        if name == "action":
            return f"The action is none of {', '.join(get_args(Action))}."
        return f"{name}: {found['msg']}."


def shown(item: Any) -> str:
    """Return a part of an answer as text, shortened."""
    text = item if isinstance(item, str) else json.dumps(clean_json(item, MAX_DEPTH), ensure_ascii=False)
    return shorten(clean_text(text[: MAX_SHOWN_CHARS * 4]), MAX_SHOWN_CHARS)


def _straightened(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item under the names of the schema, every field there and of its type where that is clear."""
    fields = {re.sub(r"[\s_-]+", "_", str(name)[:100]).casefold(): value for name, value in item.items()}
    cited = fields.get("experiences", fields.get("experience_ids"))
    return {
        "action": _name(fields.get("action")),
        "skill": _word(fields.get("skill", fields.get("skill_id"))),
        "experiences": [_word(entry) for entry in _list(cited)],
        "name": _word(fields.get("name")),
        "description": _text(fields.get("description")),
        "instructions": _text(fields.get("instructions")),
        "triggers": [_text(entry) for entry in _list(fields.get("triggers"))],
        "replacements": [_replacement(entry) for entry in _list(fields.get("replacements"))],
        "superseded": [
            pair for entry in _list(fields.get("superseded")) if (pair := _superseded(entry)) != _NO_PAIR
        ],
        "reason": _text(fields.get("reason")),
    }


def _replacement(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    given = {"field": _name(value.get("field")) or "instructions"}
    # The old text is looked up letter by letter: nothing is taken out of it but what no text here can hold.
    old, new = value.get("old", value.get("old_text", "")), value.get("new", value.get("new_text", ""))
    return given | {"old": clean_text(old) if isinstance(old, str) else old, "new": _text(new)}


_NO_PAIR = {"old": "", "by": ""}
"""What fills the place of the schema where there is nothing to say."""


def _superseded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {"old": _word(value.get("old")), "by": _word(value.get("by"))}


def _list(value: Any) -> Sequence[Any]:
    """Return a list of bounded length; a single text is a list of one."""
    if value is None or value == "":
        return []
    return value[:MAX_ENTRIES] if isinstance(value, list) else [value]


def _text(value: Any) -> Any:
    """Return a text of bounded length without what cannot be seen; what is none stays as it is."""
    if value is None:
        return ""
    return clean_text(without_invisible(value[:MAX_TEXT_CHARS])) if isinstance(value, str) else value


def _word(value: Any) -> Any:
    text = _text(value)
    return text.strip(" \t\r\n`\"'[]") if isinstance(text, str) else text


def _name(value: Any) -> Any:
    """Return one of our own words as we write it."""
    word = _word(value)
    return word.casefold() if isinstance(word, str) else word
