"""Data: description, instructions, kind and tags of each skill, from its summary and steps; nothing is lost.

- description: the summary; what exceeds the cap moves to the top of the instructions. A blank summary
  borrows the first line of the steps.
- instructions: the steps. A list has a line for each entry, numbered unless the entries carry their own
  numbers; an object has a line for each key; JSON inside a text is read as JSON; null is nothing.
- entry_type: a known one stays; else what contains `how` is a guide; what names a process, a script or a
  guide by one of `KINDS` is that; all others are workflows.

An interrupted run resumes with the rows that have no text yet. The functions are frozen here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from django.db import migrations

from skills.migrations._batches import batches, update

MAX_DESCRIPTION = 1_024
MAX_DEPTH = 20
NUMBERED = re.compile(r"(?:\d+\s*[.):](?!\d)|step\s+\d+\b|[-*•]\s)", re.IGNORECASE)
NUMBER = re.compile(r"\d+\.\s+")
UNSTORABLE = re.compile("\\\\u0000|[\ud800-\udfff]")
KINDS = (
    ("guide", ("how",)),
    ("workflow", ("workflow", "process", "procedure", "sop", "runbook", "playbook", "checklist", "routine")),
    ("script", ("script", "code", "command", "snippet", "shell", "query")),
    ("guide", ("guide", "manual", "tutorial", "reference")),
)


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
    """Return (description, instructions) of a row."""
    description, rest = split_description((summary or "").strip())
    procedure = readable(steps)
    if not description and procedure:
        description = split_description(NUMBER.sub("", procedure.splitlines()[0], count=1).strip())[0]
    return description, "\n\n".join(part for part in (rest, procedure) if part)


def readable(value: Any, depth: int = 0) -> str:
    """Return a JSON value as text for people."""
    if depth > MAX_DEPTH:
        return json.dumps(value, ensure_ascii=False)
    match value:
        case None:
            return ""
        case str():
            inner = _json_inside(value)
            return value.strip() if inner is None else readable(inner, depth + 1)
        case list():
            return _lines(value, depth)
        case dict():
            return "\n".join(_entry(key, readable(item, depth + 1)) for key, item in value.items())
    return json.dumps(value)


def _json_inside(text: str) -> Any:
    """Return the list, object or text that `text` is the JSON of; None when it is none, or cannot be stored."""
    if not text.strip().startswith(("[", "{", '"')):
        return None
    try:
        value = json.loads(text)
        unstorable = UNSTORABLE.search(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None
    return None if unstorable else value


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


def tags(filter_tags: Any) -> dict[str, Any]:
    """Return the tags a skill keeps: those of a single session are no property of a skill."""
    pairs = filter_tags if isinstance(filter_tags, dict) else {}
    return {key: value for key, value in pairs.items() if key != "session_id"}


def carried(last_modify: Any) -> tuple[list, list, str, str]:
    """Return (triggers, examples, version, status) of a row that was a skill before it became flat again."""
    skill = last_modify.get("skill") if isinstance(last_modify, dict) else None
    if not isinstance(skill, dict):
        return [], [], "0.1.0", "active"
    return skill["triggers"], skill["examples"], skill["version"], skill["status"]


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
    for batch in batches(model.objects.filter(description="", instructions=""), using):
        update(model, columns, [_values(row) for row in batch], using)


def _values(row) -> tuple[str, ...]:
    triggers, examples, version, status = carried(row.last_modify)
    return (
        row.pk,
        *texts(row.summary, row.steps),
        entry_type(row.flat_entry_type),
        json.dumps(tags(row.flat_filter_tags)),
        json.dumps(triggers),
        json.dumps(examples),
        version,
        status,
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0003_names")]
    # Going back needs nothing: the columns go with the migration before the last.
    operations = [migrations.RunPython(give_texts, migrations.RunPython.noop)]
