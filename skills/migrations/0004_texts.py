"""Data: description, instructions, kind and tags of each skill, from its summary and steps; nothing is lost.

- description: the summary; what exceeds the cap moves to the top of the instructions. A blank summary
  borrows the first line of the steps.
- instructions: the steps. A list has a line for each entry, numbered unless the entries carry their own
  numbers; an object has a line for each key; JSON inside a text is read as JSON; null is nothing. Numbers
  keep their digits. No text is dropped, so that instructions may exceed the cap of what is written today.
- entry_type: a known one stays; else what contains `how` is a guide; what names a process, a script or a
  guide by one of `KINDS` is that; all others are workflows.
- A row that was a skill before it became flat again (0007 says how) gets its own content back.

JSON is read as the text it is in the database: Python would change numbers, and stop at deep nesting. An
interrupted run resumes with the rows that have no text yet. The functions are frozen here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from django.db import migrations, models
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from skills.migrations._batches import batches, update

MAX_DESCRIPTION = 1_024
MAX_DEPTH = 20
MAX_PARSED_DEPTH = 100
NUMBERED = re.compile(r"(?:\d+\s*[.):](?!\d)|step\s+\d+\b|[-*•]\s)", re.IGNORECASE)
NUMBER = re.compile(r"\d+\.\s+")
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
KEPT = {"name", "triggers", "examples", "version", "status"}
STATUSES = ("active", "archived", "quarantined")
MAX_VERSION = 32
KINDS = (
    ("guide", ("how",)),
    ("workflow", ("workflow", "process", "procedure", "sop", "runbook", "playbook", "checklist", "routine")),
    ("script", ("script", "code", "command", "snippet", "shell", "query")),
    ("guide", ("guide", "manual", "tutorial", "reference")),
)


class Literal(str):
    """A number of a JSON text as it was written: `1.10` and 5,000 digits stay what they are."""

    __slots__ = ()


def entry_type(text: str | None) -> str:
    """Return the kind that a free text means."""
    lowered = (text or "").strip().lower()
    if lowered in ("workflow", "guide", "script"):
        return lowered
    return next((kind for kind, words in KINDS if any(word in lowered for word in words)), "workflow")


def split_description(text: str) -> tuple[str, str]:
    """Return (what fits the cap, the rest), cut at white space where there is some in the second half."""
    if len(text) <= MAX_DESCRIPTION:
        return text, ""
    space = re.search(r"\s\S*\Z", text[: MAX_DESCRIPTION + 1])
    cut = space.start() if space and space.start() > MAX_DESCRIPTION // 2 else MAX_DESCRIPTION
    return text[:cut].rstrip(), text[cut:].lstrip()


def texts(summary: str | None, steps: Any) -> tuple[str, str]:
    """Return (description, instructions) of a row; `steps` is a JSON value or a text."""
    description, rest = split_description((summary or "").strip())
    procedure = readable(steps)
    if not description and procedure:
        description = split_description(NUMBER.sub("", procedure.splitlines()[0], count=1).strip())[0]
    return description, "\n\n".join(part for part in (rest, procedure) if part)


def parsed(text: str) -> Any:
    """Return the value of a JSON text, numbers as `Literal`; the text itself where it cannot be had whole.

    That is where it is no JSON, nests deeper than 100 levels, or names a key of an object twice.
    """
    depth = deepest = 0
    for match in BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    if deepest > MAX_PARSED_DEPTH:
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


def carried(carrier: str | None) -> dict[str, Any]:
    """Return what a row has kept of the skill it was before it became flat again; empty for any other row."""
    try:
        kept = json.loads(carrier or "null")
    except (ValueError, RecursionError):
        return {}
    is_ours = (
        isinstance(kept, dict)
        and kept.keys() >= KEPT
        and kept["status"] in STATUSES
        and isinstance(kept["version"], str)
        and len(kept["version"]) <= MAX_VERSION
    )
    return kept if is_ours else {}


def give_texts(apps, schema_editor):
    model = apps.get_model("skills", "Skill")
    using = schema_editor.connection.alias
    columns = {
        "description": "text",
        "instructions": "text",
        "entry_type": "text",
        "filter_tags": "jsonb",
        "triggers": "jsonb",
        "examples": "jsonb",
        "version": "text",
        "status": "text",
    }
    text = models.TextField()
    rows = (
        model.objects.filter(description="", instructions="")
        .annotate(
            steps_text=Cast("steps", text),
            tags_text=Cast("flat_filter_tags", text),
            carrier=Cast(KeyTransform("skill", "last_modify"), text),
        )
        .only("summary", "flat_entry_type")
    )
    for batch in batches(rows, using):
        update(model, columns, [_values(row) for row in batch], using)


def _values(row) -> tuple[str, ...]:
    kept = carried(row.carrier)
    steps = None if row.steps_text is None else parsed(row.steps_text)
    is_verbatim = bool(kept.get("texts")) and isinstance(row.summary, str) and isinstance(steps, str)
    return (
        row.pk,
        *((row.summary, steps) if is_verbatim else texts(row.summary, steps)),
        entry_type(row.flat_entry_type),
        json.dumps(tags(_plain(row.tags_text))),
        json.dumps(kept.get("triggers", [])),
        json.dumps(kept.get("examples", [])),
        kept.get("version", "0.1.0"),
        kept.get("status", "active"),
    )


def _plain(text: str | None) -> Any:
    """Return the value of a JSON text, None where it cannot be had whole."""
    if text is None or isinstance(parsed(text), str):
        return None
    try:
        return json.loads(text)
    except ValueError:  # a number of thousands of digits
        return None


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0003_names")]
    # Going back needs nothing: the columns go with the migration before the last.
    operations = [migrations.RunPython(give_texts, migrations.RunPython.noop)]
