"""The strict rules of a skill's content, checked on every write; reads are lenient. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from mirix.text import MAX_DEPTH, is_blank
from skills.content import (
    ENTRY_TYPES,
    MAX_DESCRIPTION_CHARS,
    MAX_EXAMPLES,
    MAX_EXAMPLES_CHARS,
    MAX_FILTER_TAGS_CHARS,
    MAX_INSTRUCTIONS_CHARS,
    MAX_NAME_CHARS,
    MAX_TRIGGER_CHARS,
    MAX_TRIGGERS,
    NAME_PATTERN,
    Content,
    json_chars,
)

NAME = re.compile(NAME_PATTERN)


def content_errors(content: Content) -> dict[str, list[str]]:
    """Return what is wrong with `content`, messages by field; empty when it may be published."""
    found = {
        "name": list(_name(content.name)),
        "entry_type": list(_entry_type(content.entry_type)),
        "description": list(_text(content.description, MAX_DESCRIPTION_CHARS)),
        "instructions": list(_text(content.instructions, MAX_INSTRUCTIONS_CHARS)),
        "triggers": list(_triggers(content.triggers)),
        "examples": list(_examples(content.examples)),
        "filter_tags": list(_filter_tags(content.filter_tags)),
    }
    return {name: messages for name, messages in found.items() if messages}


def _name(name: Any) -> Iterator[str]:
    if not isinstance(name, str) or not name:
        yield "A skill needs a name."
        return
    if len(name) > MAX_NAME_CHARS:
        yield f"At most {MAX_NAME_CHARS} characters; this one has {len(name)}."
    if not NAME.fullmatch(name):
        yield "Lower-case ASCII letters, digits and single hyphens between them only."


def _entry_type(entry_type: Any) -> Iterator[str]:
    if entry_type not in ENTRY_TYPES:
        yield f"One of {', '.join(ENTRY_TYPES)}."


def _text(text: Any, limit: int) -> Iterator[str]:
    if not isinstance(text, str) or is_blank(text):
        yield "Must not be blank."
    elif len(text) > limit:
        yield f"At most {limit:,} characters; this has {len(text):,}."


def _triggers(triggers: Any) -> Iterator[str]:
    if not isinstance(triggers, list):
        yield "Must be a list of texts."
        return
    if len(triggers) > MAX_TRIGGERS:
        yield f"At most {MAX_TRIGGERS} triggers; there are {len(triggers)}."
    for number, trigger in enumerate(triggers, start=1):
        if not isinstance(trigger, str) or is_blank(trigger):
            yield f"Trigger {number} must be a text that is not blank."
        elif len(trigger) > MAX_TRIGGER_CHARS:
            yield f"Trigger {number} has {len(trigger)} characters; at most {MAX_TRIGGER_CHARS}."


def _examples(examples: Any) -> Iterator[str]:
    if not isinstance(examples, list):
        yield "Must be a list of objects."
        return
    if len(examples) > MAX_EXAMPLES:
        yield f"At most {MAX_EXAMPLES} examples; there are {len(examples)}."
    for number, example in enumerate(examples, start=1):
        if not isinstance(example, dict):
            yield f"Example {number} must be an object."
    yield from json_errors(examples) or _size(examples, MAX_EXAMPLES_CHARS)


def _filter_tags(filter_tags: Any) -> Iterator[str]:
    if not isinstance(filter_tags, dict):
        yield "Must be an object."
        return
    yield from json_errors(filter_tags) or _size(filter_tags, MAX_FILTER_TAGS_CHARS)


def json_errors(value: Any) -> list[str]:
    """Return why JSON could not be kept as it is: what is no number, or nests too deep to be read again."""
    level, depth = [value], 0
    while level:
        containers = [item for item in level if isinstance(item, dict | list | tuple)]
        depth += bool(containers)
        if depth > MAX_DEPTH:
            return [f"Nested too deep; at most {MAX_DEPTH} levels."]
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            return ["NaN, infinities and numbers beyond a double cannot be kept."]
        level = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
        ]
    return []


def _size(value: Any, limit: int) -> Iterator[str]:
    if (size := json_chars(value)) > limit:
        yield f"At most {limit:,} characters as JSON; this has {size:,}."
