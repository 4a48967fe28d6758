"""What a skill is made of when it comes from a flat memory: a summary, steps, and a kind in free text. Pure.

The migrations hold frozen copies of these rules; `tests/skills/test_migrations.py` says that they agree.

- name: the slug of the summary, or one made of the row's id, unique among its owner's (`Names`).
- description: the summary; what exceeds the cap moves to the top of the instructions. A blank summary
  borrows the first line of the steps.
- instructions: the steps. A list has a line for each entry, numbered unless the entries carry their own
  numbers; an object has a line for each key; JSON inside a text is read as JSON; null is nothing. Numbers
  keep their digits. No text is dropped, so that instructions may exceed the cap of what is written today.
- entry_type: `skills.content.entry_type_of`.

Texts must be storable: pass them through `mirix.text.clean_text` first where they come from a `json` column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from mirix.text import slugify
from skills.content import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, NAME_PATTERN

MAX_DEPTH = 20
MAX_PARSED_DEPTH = 100
VALID = re.compile(NAME_PATTERN.strip("^$"))
NUMBERED = re.compile(r"(?:\d+\s*[.):](?!\d)|step\s+\d+\b|[-*•]\s)", re.IGNORECASE)
NUMBER = re.compile(r"\d+\.\s+")
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Literal(str):
    """A number of a JSON text as it was written: `1.10` and 5,000 digits stay what they are."""

    __slots__ = ()


def is_valid_name(name: object) -> bool:
    """Whether a name may stay as it is."""
    return isinstance(name, str) and len(name) <= MAX_NAME_CHARS and bool(VALID.fullmatch(name))


def base_name(summary: str | None, row_id: str) -> str:
    """Return the slug of a summary, or one made of the last eight characters of the row's id."""
    return slugify(summary or "") or slugify(f"skill-{row_id[-8:]}")


class Names:
    """The names of one owner.

    `brought` are (row id, name) of the rows whose summary is a valid name already, in order of creation: it
    is reserved for the first of them. `given` are names that are taken, by rows named before.
    """

    def __init__(self, brought: Iterable[tuple[str, str]], given: Iterable[str]) -> None:
        self._taken = set(given)
        self._holder: dict[str, str] = {}
        for row_id, name in brought:
            self._holder.setdefault(name, row_id)
        self._reserved = self._holder.keys() - self._taken
        self._next: dict[str, int] = {}

    def name_for(self, row_id: str, brought: str | None, base: str) -> str:
        """Return the name of the next row in order of creation: its own, its base, or that with a number."""
        if brought in self._reserved and self._holder[brought] == row_id:
            self._reserved.discard(brought)
            self._taken.add(brought)
            return brought
        base = brought or base
        name, number = base, self._next.get(base, 2)
        while name in self._taken or name in self._reserved:
            suffix = f"-{number}"
            name = base[: MAX_NAME_CHARS - len(suffix)].rstrip("-") + suffix
            number += 1
        self._next[base] = number
        self._taken.add(name)
        return name


def split_description(text: str) -> tuple[str, str]:
    """Return (what fits the cap, the rest), cut at white space where there is some in the second half."""
    if len(text) <= MAX_DESCRIPTION_CHARS:
        return text, ""
    space = re.search(r"\s\S*\Z", text[: MAX_DESCRIPTION_CHARS + 1])
    cut = space.start() if space and space.start() > MAX_DESCRIPTION_CHARS // 2 else MAX_DESCRIPTION_CHARS
    return text[:cut].rstrip(), text[cut:].lstrip()


def texts(summary: str | None, steps: Any) -> tuple[str, str]:
    """Return (description, instructions) of a row; `steps` is a JSON value or a text."""
    description, rest = split_description((summary or "").strip())
    procedure = readable(steps)
    if not description and procedure:
        description = split_description(NUMBER.sub("", procedure.splitlines()[0], count=1).strip())[0]
    return description, "\n\n".join(part for part in (rest, procedure) if part)


def is_too_deep(text: str) -> bool:
    """Return whether a JSON text nests deeper than 100 levels."""
    if text.count("[") + text.count("{") <= MAX_PARSED_DEPTH:
        return False
    depth = deepest = 0
    for match in BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    return deepest > MAX_PARSED_DEPTH


def parsed(text: str) -> Any:
    """Return the value of a JSON text, numbers as `Literal`; the text itself where it cannot be had whole.

    That is where it is no JSON, nests deeper than 100 levels, or names a key of an object twice.
    """
    if is_too_deep(text):
        return text
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=Literal,
            parse_int=Literal,
            parse_constant=Literal,
        )
    except ValueError:
        return text


def readable(value: Any, depth: int = 0) -> str:
    """Return a JSON value as text for people."""
    if depth > MAX_DEPTH:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    match value:
        case None:
            return ""
        case Literal():
            return str(value)
        case str():
            inner = _json_inside(value)
            return value.strip() if inner is None else readable(inner, depth + 1)
        case list():
            return _lines(value, depth)
        case dict():
            return "\n".join(_entry(key, readable(item, depth + 1)) for key, item in value.items())
    return json.dumps(value)


def tags(filter_tags: Any) -> dict[str, Any]:
    """Return the tags a skill keeps: those of a single session are no property of a skill."""
    pairs = filter_tags if isinstance(filter_tags, dict) else {}
    return {key: value for key, value in pairs.items() if key != "session_id"}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("A key stands twice.")
    return found


def _json_inside(text: str) -> Any:
    """Return the list, object or text that `text` is the JSON of; None if it is none or cannot be stored."""
    if not text.strip().startswith(("[", "{", '"')):
        return None
    value = parsed(text)
    if value is text or UNSTORABLE.search(json.dumps(value, ensure_ascii=False).replace("\\u0000", "\x00")):
        return None
    return value


def _lines(items: list[Any], depth: int) -> str:
    lines = [text for item in items if (text := readable(item, depth + 1))]
    if any(NUMBERED.match(item.strip()) for item in items if isinstance(item, str)):
        return "\n".join(lines)
    margins = [f"{number}. " for number in range(1, len(lines) + 1)]
    return "\n".join(
        margin + _indented(line, " " * len(margin)) for margin, line in zip(margins, lines, strict=True)
    )


def _entry(key: str, text: str) -> str:
    return f"{key}:\n  {_indented(text, '  ')}" if "\n" in text else f"{key}: {text}".rstrip()


def _indented(text: str, margin: str) -> str:
    return text.replace("\n", f"\n{margin}")
