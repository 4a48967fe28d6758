"""A procedural memory of the original as the content of a skill, whatever its generation. Pure.

The rules for flat memories are those of `skills.interop.legacy`, which the migration of our own flat table
follows too. A later generation brings name, triggers, examples and version along.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mirix.text import clean_json, clean_text, truncate
from skills.content import (
    MAX_INSTRUCTIONS_CHARS,
    MAX_TRIGGER_CHARS,
    MAX_TRIGGERS,
    SEMVER,
    Content,
    entry_type_of,
    fitting,
)
from skills.interop.legacy import is_valid_name, tags, texts
from skills.interop.original.values import JSON_TYPES, Row, has_unstorable, json_value, numbered_value, text

TABLES = ("procedural_memory_items", "procedural_memory")
"""In the order of their generations: of equals the older one is named first."""
TEXTS = (
    *("name", "entry_type", "summary", "description", "steps", "instructions", "triggers", "examples"),
    *("version", "filter_tags", "tree_path", "metadata_"),
)
COLUMNS = (
    *("id", "organization_id", "user_id", "agent_id", "client_id", "is_deleted", "created_at", "updated_at"),
    *TEXTS,
)
NAMING = (
    *("id", "organization_id", "user_id", "client_id", "is_deleted", "created_at", "name"),
    *("summary", "description", "filter_tags"),
)
"""The columns that decide whose a memory is and what it is called."""
AS_JSON = ("triggers", "examples", "filter_tags")
"""Read as JSON whatever the type of the column is."""
FIRST_VERSION = "0.1.0"
MAX_VERSION_CHARS = 32


def generation_of(table: str, columns: Mapping[str, str], clients: Mapping[str, str]) -> str:
    """Return which generation a table of memories is, by its columns; of three alike, by those of clients."""
    if table == "procedural_memory_items":
        return "G1"
    if "instructions" in columns:
        return "G6" if columns.get("triggers") == "jsonb" else "G5"
    if "summary" in columns and "tree_path" not in columns:
        if "client_id" in columns:
            return "G4e" if "write_scope" in clients else "G4d" if "email" in clients else "G4c"
        return "G4b" if "filter_tags" in columns else "G4a"
    return "G3" if "user_id" in columns else "G2"


def own_name(row: Row) -> str | None:
    """Return the name that a row brings along, if it is one that a skill may have."""
    for name in (row.get("name"), _first(row, "summary", "description")):
        if name is not None and is_valid_name(name):
            return name
    return None


def named_after(row: Row) -> str:
    """Return the text that a row without a usable name is called after."""
    return text(row.get("name")) or text(_first(row, "summary", "description"))


def content_of(row: Row, name: str, types: Mapping[str, str], notes: Counter[str]) -> Content:
    """Return the content of a skill, and count in `notes` what is not as it was."""
    read = [column for column in TEXTS if column in AS_JSON or types.get(column) in JSON_TYPES]
    if any(has_unstorable(row.get(column)) for column in read):
        notes["characters that cannot be stored were left out"] += 1
    summary = text(_first(row, "description", "summary"))
    description, instructions = texts(summary, _steps(row, types, notes))
    if len(summary.strip()) > len(description):
        notes["long description continued in the instructions"] += 1
    instructions, is_cut = truncate(instructions, MAX_INSTRUCTIONS_CHARS)
    if is_cut:
        notes["instructions cut at the limit; whole in the first revision"] += 1
    if not description or not instructions:
        notes["without a description or instructions"] += 1
    return Content(
        name=name,
        description=description,
        instructions=instructions,
        entry_type=entry_type_of(row.get("entry_type")),
        triggers=_triggers(row, notes),
        examples=_examples(row, notes),
        filter_tags=_tags(row, notes),
    )


def version_of(row: Row, notes: Counter[str]) -> str:
    """Return the version of a skill, the first one where it has none that is semantic."""
    version = row.get("version")
    if version is None:
        return FIRST_VERSION
    if len(version) <= MAX_VERSION_CHARS and SEMVER.fullmatch(version):
        return version
    notes[f"version that is not semantic became {FIRST_VERSION}"] += 1
    return FIRST_VERSION


def source_of(row: Row, table: str, generation: str, database: str) -> dict[str, Any]:
    """Return what the first revision keeps of a row: every column that was read, as its text."""
    kept = {"database": database, "table": table, "generation": generation, "row": row}
    found: dict[str, Any] = clean_json(kept)
    return found


def _first(row: Row, *columns: str) -> str | None:
    return next((row[column] for column in columns if row.get(column) is not None), None)


def _steps(row: Row, types: Mapping[str, str], notes: Counter[str]) -> Any:
    """Return the procedure as JSON value or text."""
    column = "instructions" if row.get("instructions") is not None else "steps"
    value = row.get(column)
    if value is None or types.get(column) not in JSON_TYPES:
        return text(value)
    found = json_value(value)
    if isinstance(found, str) and not value.startswith('"'):
        notes["steps too odd to be read as JSON kept as text"] += 1
    return found


def _triggers(row: Row, notes: Counter[str]) -> list[str]:
    found = _as_texts(_listed(row, "triggers", notes))
    kept = [truncate(item, MAX_TRIGGER_CHARS)[0] for item in found[:MAX_TRIGGERS]]
    if kept != found:
        notes["triggers cut at the limits; whole in the first revision"] += 1
    return kept


def _as_texts(items: list[Any]) -> list[str]:
    texts_ = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items]
    return [clean_text(item) for item in texts_ if item.strip()]


def _examples(row: Row, notes: Counter[str]) -> list[dict[str, Any]]:
    found = _listed(row, "examples", notes)
    kept = fitting([item if isinstance(item, dict) else {"example": item} for item in found])
    if len(kept) < len(found):
        notes["examples cut at the limit; whole in the first revision"] += 1
    return kept


def _tags(row: Row, notes: Counter[str]) -> dict[str, Any]:
    found = _json(row, "filter_tags", notes)
    if found is not None and not isinstance(found, dict):
        notes["filter_tags that are no object left out; whole in the first revision"] += 1
    return tags(found)


def _listed(row: Row, column: str, notes: Counter[str]) -> list[Any]:
    """Return a JSON list; anything else is one of one."""
    found = _json(row, column, notes)
    if found is None or found == "":
        return []
    if isinstance(found, str) and not (row[column] or "").lstrip().startswith('"'):
        notes[f"{column} too odd to be read as JSON kept as text"] += 1
    return found if isinstance(found, list) else [found]


def _json(row: Row, column: str, notes: Counter[str]) -> Any:
    odd: list[str] = []
    found = numbered_value(row.get(column), odd)
    if odd:
        notes[f"numbers in {column} that cannot be kept as such became text"] += 1
    return found
