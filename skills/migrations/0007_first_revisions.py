"""Data: the first revision of each migrated skill; it keeps the flat row it came from, untouched.

The row goes from column to column inside PostgreSQL, so that every number and every depth of nesting stays;
JSON that Python could not read is kept as its text, and `as_text` names it. The search index is not written
here, since how texts are analysed may change: run `search_index rebuild` after migrating rows. An interrupted
run resumes with the skills that have no revision yet.

Going back makes flat rows again. A skill whose texts nobody changed gets its own row back; of any other the
texts become summary and steps. What the flat table has no column for, the name among it, waits under the key
`skill` of `last_modify`, where the way forward finds it and takes it away again: a skill keeps its name, its
version and its status whatever else happens to its owner's. JSON null comes back as NULL; a client that is
gone stays gone. Proposals, history and evidence go with their tables.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from django.db import connections, migrations, models
from django.db.models.functions import Cast

from skills.migrations._batches import batches, update

MAX_PARSED_DEPTH = 100
CONTENT = ("name", "description", "instructions", "entry_type", "triggers", "examples", "filter_tags")
FLAT = {
    "summary": "text",
    "steps": "jsonb",
    "flat_entry_type": "text",
    "flat_filter_tags": "jsonb",
    "last_modify": "jsonb",
    "client_id": "text",
}
FLAT_JSON = [name for name, kind in FLAT.items() if kind == "jsonb"]
BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
# `last_modify` as it was: without what the way back put there, see RESTORE.
LAST_MODIFY = """
    CASE WHEN last_modify->'skill' ? 'last_modify' THEN last_modify->'skill'->'last_modify'
         WHEN jsonb_typeof(last_modify) = 'object' THEN last_modify - 'skill'
         ELSE last_modify END
"""
KEEP = f"""
    UPDATE skills_skillrevision SET source = flat.source
    FROM (
        SELECT current_revision_id, jsonb_build_object(
            'summary', summary,
            'steps', CASE WHEN as_text ? 'steps' THEN to_jsonb(steps::text) ELSE steps END,
            'flat_entry_type', flat_entry_type,
            'flat_filter_tags',
                CASE WHEN as_text ? 'flat_filter_tags' THEN to_jsonb(flat_filter_tags::text) ELSE flat_filter_tags END,
            'last_modify',
                CASE WHEN as_text ? 'last_modify' THEN to_jsonb(({LAST_MODIFY})::text) ELSE {LAST_MODIFY} END,
            'client_id', client_id
        ) || CASE WHEN as_text = '[]' THEN '{{}}' ELSE jsonb_build_object('as_text', as_text) END AS source
        FROM skills_skill JOIN unnest(%s::text[], %s::jsonb[]) AS batch(id, as_text) USING (id)
    ) AS flat
    WHERE skills_skillrevision.id = flat.current_revision_id
"""  # noqa: S608
RESTORE = """
    WITH flat AS (
        SELECT skill.id, batch.kept, source->>'summary' AS summary, source->>'flat_entry_type' AS flat_entry_type,
            client.id AS client_id,
            CASE WHEN as_text ? 'steps' THEN (source->>'steps')::jsonb ELSE source->'steps' END AS steps,
            CASE WHEN as_text ? 'flat_filter_tags' THEN (source->>'flat_filter_tags')::jsonb
                 ELSE source->'flat_filter_tags' END AS flat_filter_tags,
            CASE WHEN as_text ? 'last_modify' THEN (source->>'last_modify')::jsonb
                 ELSE source->'last_modify' END AS last_modify
        FROM unnest(%s::text[], %s::jsonb[]) AS batch(id, kept)
        JOIN skills_skill AS skill USING (id)
        JOIN skills_skillrevision AS revision ON revision.id = skill.current_revision_id
        CROSS JOIN coalesce(revision.source->'as_text', '[]') AS as_text
        LEFT JOIN tenants_client AS client ON client.id = revision.source->>'client_id'
    )
    UPDATE skills_skill AS skill SET
        summary = flat.summary,
        steps = nullif(flat.steps, 'null'),
        flat_entry_type = flat.flat_entry_type,
        flat_filter_tags = nullif(flat.flat_filter_tags, 'null'),
        last_modify = CASE WHEN jsonb_typeof(flat.last_modify) = 'object' THEN flat.last_modify || flat.kept
            ELSE jsonb_set(flat.kept, '{skill,last_modify}', flat.last_modify) END,
        client_id = flat.client_id
    FROM flat WHERE skill.id = flat.id
"""


def content_hash(content: dict[str, Any]) -> str:
    """Return the SHA-256 (hex) over the canonical JSON of a content."""
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def add_revisions(apps, schema_editor):
    skills, revisions = apps.get_model("skills", "Skill"), apps.get_model("skills", "SkillRevision")
    using = schema_editor.connection.alias
    rows = skills.objects.filter(current_revision=None).annotate(
        **{f"{name}_text": Cast(name, models.TextField()) for name in FLAT_JSON}
    )
    for batch in batches(rows.defer("summary", *FLAT_JSON), using):
        made = revisions.objects.using(using).bulk_create(_revision(revisions, row) for row in batch)
        current = [(revision.skill_id, revision.pk) for revision in made]
        update(skills, {"current_revision": "text"}, current, using)
        as_text = [
            [name for name in FLAT_JSON if not is_readable(getattr(row, f"{name}_text"))] for row in batch
        ]
        with connections[using].cursor() as cursor:
            cursor.execute(KEEP, [[pk for pk, _ in current], list(map(json.dumps, as_text))])


def _revision(model, row):
    content = {name: getattr(row, name) for name in CONTENT}
    return model(
        organization_id=row.organization_id,
        end_user_id=row.end_user_id,
        skill_id=row.pk,
        action="migrate",
        author_kind="import",
        rationale="Migrated from a flat procedural memory.",
        content_hash=content_hash(content),
        version=row.version,
        state="published",
        **content,
    )


def is_readable(text: str | None) -> bool:
    """Whether Python can read the text of a JSON value, wherever it has to."""
    if text is None:
        return True
    depth = deepest = 0
    for match in BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match.group(), 0)
        deepest = max(deepest, depth)
    if deepest > MAX_PARSED_DEPTH:
        return False
    try:
        json.loads(text)
    except ValueError:  # a number of thousands of digits
        return False
    return True


def flatten(apps, schema_editor):
    skills = apps.get_model("skills", "Skill")
    using = schema_editor.connection.alias
    rows = skills.objects.select_related("current_revision").annotate(
        has_source=models.Q(current_revision__action="migrate", current_revision__source__isnull=False)
    )
    for batch in batches(rows.only("version", "status", *CONTENT, "current_revision__id"), using):
        own = [(row.pk, json.dumps({"skill": kept(row)})) for row in batch if row.has_source]
        if own:
            with connections[using].cursor() as cursor:
                cursor.execute(RESTORE, [list(values) for values in zip(*own, strict=True)])
        changed = [(row.pk, *flat_row(row)) for row in batch if not row.has_source]
        if changed:
            update(skills, FLAT, changed, using)


def kept(row) -> dict[str, Any]:
    """Return what the flat table has no column for."""
    return {name: getattr(row, name) for name in ("name", "triggers", "examples", "version", "status")}


def flat_row(row) -> tuple[str | None, ...]:
    """Return the columns of the flat table, in the order of `FLAT`, of a skill that never had them or was edited."""
    return (
        row.description,
        json.dumps(row.instructions),
        row.entry_type,
        json.dumps(row.filter_tags),
        json.dumps({"operation": "flattened", "skill": kept(row) | {"texts": True}}),
        None,
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0006_learning")]
    operations = [migrations.RunPython(add_revisions, flatten)]
