"""Data: the first revision of each migrated skill; it keeps the flat row it came from, untouched.

The search index is not written here, since how texts are analysed may change: run `search_index rebuild`
after migrating rows. An interrupted run resumes with the skills that have no revision yet.

Going back makes flat rows again. A skill that nobody changed gets its own row back to the letter; of any
other the texts become summary and steps, and what the flat table has no column for stays in `last_modify`,
where the way forward finds it. Proposals, history and evidence go with their tables.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django.db import migrations

from skills.migrations._batches import batches, update

CONTENT = ("name", "description", "instructions", "entry_type", "triggers", "examples", "filter_tags")
FLAT = {
    "summary": "text",
    "steps": "jsonb",
    "flat_entry_type": "text",
    "flat_filter_tags": "jsonb",
    "last_modify": "jsonb",
    "client_id": "text",
}


def content_hash(content: dict[str, Any]) -> str:
    """Return the SHA-256 (hex) over the canonical JSON of a content."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def add_revisions(apps, schema_editor):
    skills, revisions = apps.get_model("skills", "Skill"), apps.get_model("skills", "SkillRevision")
    using = schema_editor.connection.alias
    for batch in batches(skills.objects.filter(current_revision=None), using):
        made = revisions.objects.using(using).bulk_create(_revision(revisions, row) for row in batch)
        current = [(revision.skill_id, revision.pk) for revision in made]
        update(skills, {"current_revision": "text"}, current, using)


def _revision(model, row):
    content = {name: getattr(row, name) for name in CONTENT}
    return model(
        organization_id=row.organization_id,
        end_user_id=row.end_user_id,
        skill_id=row.pk,
        action="migrate",
        author_kind="import",
        rationale="Migrated from a flat procedural memory.",
        source={name: getattr(row, name) for name in FLAT},
        content_hash=content_hash(content),
        version=row.version,
        state="published",
        **content,
    )


def flatten(apps, schema_editor):
    skills, clients = apps.get_model("skills", "Skill"), apps.get_model("tenants", "Client")
    using = schema_editor.connection.alias
    for batch in batches(skills.objects.select_related("current_revision"), using):
        flat = [(row.pk, flat_row(row)) for row in batch]
        named = {values["client_id"] for _, values in flat}
        alive = set(clients.objects.using(using).filter(pk__in=named).values_list("pk", flat=True))
        for _, values in flat:
            values["client_id"] = values["client_id"] if values["client_id"] in alive else None
        update(skills, FLAT, [(pk, *_as_columns(values)) for pk, values in flat], using)


def flat_row(row) -> dict[str, Any]:
    """Return the columns of the flat table for a skill."""
    revision = row.current_revision
    if revision is not None and revision.action == "migrate" and revision.source:
        return {name: revision.source[name] for name in FLAT}
    kept = {name: getattr(row, name) for name in ("name", "triggers", "examples", "version", "status")}
    return {
        "summary": row.description,
        "steps": row.instructions,
        "flat_entry_type": row.entry_type,
        "flat_filter_tags": row.filter_tags,
        "last_modify": {"operation": "flattened", "skill": kept},
        "client_id": None,
    }


def _as_columns(values: dict[str, Any]) -> list[str | None]:
    return [
        json.dumps(value) if kind == "jsonb" and value is not None else value
        for value, kind in ((values[name], kind) for name, kind in FLAT.items())
    ]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0006_learning")]
    operations = [migrations.RunPython(add_revisions, flatten)]
