"""Data: skills and revisions that the rules of 0014 would refuse are repaired; nothing that they held is lost.

- triggers and examples: a list keeps its first 50. A text that is the JSON of a list is that list; of anything
  else each line is a trigger, an object is an example, and so is any other value under the key `example`.
  What exceeds the caps goes on at the end of the instructions, under a heading of its own.
- What nests deeper than 100 levels, or has a whole number of over 4,300 digits, Python cannot read: it counts as
  its text, and filter_tags of that kind as none.
- filter_tags that are no object are none, and a version that is not semantic is 0.1.0, or, where a published
  revision lacks it and is the current one, the version of its skill; entry_type is read as in 0004.
- An action or a kind of author that does not exist cannot be guessed: such rows are named, and nothing is
  touched before they are corrected.

What a revision held before waits in its `source`, under `before_repair`, as text, so that going back restores
it to the letter; there too, in its current revision, what the skill held. A skill without a revision gets its
first one, which stays on the way back. A skill that was edited since stays as it is then. An interrupted run
resumes, since a repaired row is none to repair. The helpers of 0004 and 0007 are the chain's rules, frozen.
"""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

from django.core.management.base import CommandError
from django.db import connections, migrations, models
from django.db.models import F, Func, OuterRef, Q, Subquery, Value
from django.db.models.functions import Cast

from skills.migrations._batches import batches, update

_texts = importlib.import_module("skills.migrations.0004_texts")
_revisions = importlib.import_module("skills.migrations.0007_first_revisions")

SEMANTIC = (
    r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})"
    r"(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$"
)
FIRST_VERSION = "0.1.0"
ENTRY_TYPES = ["workflow", "guide", "script"]
CHOICES = {
    "action": [
        *("create", "edit", "import", "migrate", "rollback"),
        *("archive", "restore", "quarantine", "release"),
    ],
    "author_kind": ["llm", "offline", "human", "import", "demo"],
}
MAX_ITEMS = 50
MAX_TRIGGER = 512
NAMED_AT_MOST = 12
JSON = ("triggers", "examples", "filter_tags")
REPAIRED = {
    "entry_type": "text",
    "instructions": "text",
    "triggers": "jsonb",
    "examples": "jsonb",
    "filter_tags": "jsonb",
    "version": "text",
}
OF_REVISIONS = REPAIRED | {"content_hash": "text"}


def _held(row: str, columns: dict[str, str]) -> str:
    pairs = ", ".join(f"'{name}', {row}.{name}::text" for name in columns)
    return f"jsonb_build_object({pairs})"


def _keep(held: str, row: str) -> str:
    """Return the SQL of a revision's source with what is held; of a source that is no object, beside it."""
    return f"""
        CASE WHEN jsonb_typeof({row}.source) = 'object' THEN {row}.source || jsonb_build_object('before_repair',
                coalesce({row}.source->'before_repair', '{{}}') || {held})
             ELSE jsonb_build_object('before_repair', {held} || jsonb_build_object('source', {row}.source)) END
    """


def _restored(columns: dict[str, str], holder: str) -> str:
    return ", ".join(
        f"{name} = (revision.source->'before_repair'->'{holder}'->>'{name}')::{kind}"
        for name, kind in columns.items()
    )


# Names of columns are this module's; values are parameters.
KEEP_REVISIONS = f"""
    UPDATE skills_skillrevision AS revision
    SET source = {_keep(f"jsonb_build_object('revision', {_held('revision', OF_REVISIONS)})", "revision")},
        {", ".join(f"{name} = new.{name}" for name in OF_REVISIONS)}
    FROM unnest(%s::text[], {", ".join(f"%s::{kind}[]" for kind in OF_REVISIONS.values())})
        AS new(id, {", ".join(OF_REVISIONS)})
    WHERE revision.id = new.id
"""  # noqa: S608
KEEP_SKILLS = f"""
    UPDATE skills_skillrevision AS revision
    SET source = {_keep(f"jsonb_build_object('skill', {_held('skill', REPAIRED)})", "revision")}
    FROM skills_skill AS skill WHERE skill.current_revision_id = revision.id AND skill.id = ANY(%s)
"""  # noqa: S608
RESTORE_SKILLS = f"""
    UPDATE skills_skill AS skill SET {_restored(REPAIRED, "skill")}
    FROM skills_skillrevision AS revision
    WHERE revision.id = ANY(%s) AND skill.current_revision_id = revision.id
        AND revision.source->'before_repair' ? 'skill'
"""  # noqa: S608
RESTORE_REVISIONS = f"""
    UPDATE skills_skillrevision AS revision SET {_restored(OF_REVISIONS, "revision")}
    WHERE revision.id = ANY(%s) AND revision.source->'before_repair' ? 'revision'
"""  # noqa: S608
RESTORE_SOURCES = """
    UPDATE skills_skillrevision SET source =
        CASE WHEN source->'before_repair' ? 'source' THEN nullif(source->'before_repair'->'source', 'null')
             ELSE source - 'before_repair' END
    WHERE id = ANY(%s) AND jsonb_typeof(source) = 'object'
"""


def is_list(value: Any) -> bool:
    """Whether triggers or examples may stay as they are."""
    return isinstance(value, list) and len(value) <= MAX_ITEMS


def triggers_of(value: Any) -> tuple[list[Any], list[Any]]:
    """Return (triggers, what exceeds the caps) of any JSON value."""
    found = _list_of(value)
    if found is not None:
        return found[:MAX_ITEMS], found[MAX_ITEMS:]
    lines = [line.strip() for line in _texts.readable(value).splitlines() if line.strip()]
    kept = [line for line in lines if len(line) <= MAX_TRIGGER][:MAX_ITEMS]
    return kept, [line for line in lines if line not in kept]


def examples_of(value: Any) -> tuple[list[Any], list[Any]]:
    """Return (examples, what exceeds the cap) of any JSON value."""
    found = _list_of(value)
    if found is None:
        found = [value] if isinstance(value, dict) else [{"example": value}]
    return found[:MAX_ITEMS], found[MAX_ITEMS:]


def repaired(held: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the columns of a row by name, JSON as its text, as the rules want them.

    `version` is the one to take where the row has none that is semantic.
    """
    values = {name: _value(held[name]) for name in JSON}
    new = dict(held)
    rest = []
    for name, heading, made in (("triggers", "Triggers", triggers_of), ("examples", "Examples", examples_of)):
        if not is_list(values[name]):
            kept, over = made(values[name])
            new[name] = json.dumps(kept, ensure_ascii=False)
            rest += [f"## More {heading.lower()}\n\n{_texts.readable(over)}"] if over else []
    new["instructions"] = "\n\n".join(part for part in (held["instructions"], *rest) if part)
    if not isinstance(values["filter_tags"], dict):
        new["filter_tags"] = "{}"
    if held["entry_type"] not in ENTRY_TYPES:
        new["entry_type"] = _texts.entry_type(held["entry_type"])
    return new | {"version": version}


def _list_of(value: Any) -> list[Any] | None:
    """Return the list that a value is, or is the JSON of; None if it is neither."""
    if isinstance(value, str) and isinstance(_texts._json_inside(value), list):
        value = _value(value)
    return [] if value in (None, "") else value if isinstance(value, list) else None


def _value(text: str) -> Any:
    """Return the value of a JSON text; the text itself where Python cannot have it."""
    return json.loads(text) if _revisions.is_readable(text) else text


def _path(field: str, path: str) -> Func:
    return Func(F(field), Value(path), function="jsonb_path_match", output_field=models.BooleanField())


IS_UNREADABLE = (
    'exists($.**{100} ? (@.type() == "array" || @.type() == "object"))'
    ' || exists($.** ? (@.type() == "number" && (@ >= 1e4300 || @ <= -1e4300)))'
)
IS_ODD = (
    ~Q(entry_type__in=ENTRY_TYPES)
    | Q(_path("triggers", f'strict $.type() != "array" || $.size() > {MAX_ITEMS} || {IS_UNREADABLE}'))
    | Q(_path("examples", f'strict $.type() != "array" || $.size() > {MAX_ITEMS} || {IS_UNREADABLE}'))
    | Q(_path("filter_tags", f'strict $.type() != "object" || {IS_UNREADABLE}'))
)
IS_SEMANTIC = Q(version__regex=SEMANTIC)
IS_ODD_REVISION = IS_ODD | (~IS_SEMANTIC & (~Q(version="") | Q(state="published")))


def repair(apps, schema_editor):
    skills, revisions = apps.get_model("skills", "Skill"), apps.get_model("skills", "SkillRevision")
    using = schema_editor.connection.alias
    refuse_unknown(revisions, using)
    for batch in batches(_rows(revisions, IS_ODD_REVISION).annotate(of_skill=_version_of(skills)), using):
        _run(KEEP_REVISIONS, [_revision_values(row) for row in batch], using)
    for batch in batches(_rows(skills, IS_ODD | ~IS_SEMANTIC), using):
        new = [(row, repaired(_columns(row), _semantic(row.version))) for row in batch]
        _add_first_revisions(skills, revisions, new, using)
        with connections[using].cursor() as cursor:
            cursor.execute(KEEP_SKILLS, [[row.pk for row in batch]])
        update(skills, REPAIRED, [(row.pk, *map(values.get, REPAIRED)) for row, values in new], using)


def refuse_unknown(revisions, using: str) -> None:
    """Raise `CommandError` where a revision says that something was done, or by somebody, that there is not."""
    unknown = ~Q(action__in=CHOICES["action"]) | ~Q(author_kind__in=CHOICES["author_kind"])
    rows = revisions.objects.using(using).filter(unknown)
    if not (count := rows.count()):
        return
    named = [
        f"{pk} (action “{action}”, author_kind “{kind}”)"
        for pk, action, kind in rows.order_by("pk").values_list("pk", "action", "author_kind")[:NAMED_AT_MOST]
    ]
    more = f" and {count - len(named)} more" if count > len(named) else ""
    valid = "; ".join(f"{field} to one of {', '.join(values)}" for field, values in CHOICES.items())
    raise CommandError(
        f"{count} row{'s' * (count > 1)} of skills_skillrevision say what no revision can, and what they mean "
        f"cannot be guessed: {', '.join(named)}{more}. Nothing was changed. Set {valid}; then run "
        "./run migrate again."
    )


def _rows(model, is_odd: Q):
    # The JSON as its text: Python may not be able to read it.
    return (
        model.objects.filter(is_odd)
        .annotate(**{f"{name}_text": Cast(name, models.TextField()) for name in JSON})
        .defer(*JSON, *(["source"] if model._meta.model_name == "skillrevision" else []))
    )


def _version_of(skills) -> Subquery:
    """Return the semantic version of the skill whose current revision it is, else NULL."""
    return Subquery(skills.objects.filter(IS_SEMANTIC, current_revision=OuterRef("pk")).values("version")[:1])


def _columns(row) -> dict[str, Any]:
    return {name: getattr(row, f"{name}_text" if name in JSON else name) for name in REPAIRED}


def _semantic(version: str, otherwise: str = FIRST_VERSION) -> str:
    return version if re.fullmatch(SEMANTIC, version) else otherwise


def _revision_values(row) -> tuple[Any, ...]:
    version = row.version
    if version or row.state == "published":
        version = _semantic(version, (None if version else row.of_skill) or FIRST_VERSION)
    held = _columns(row)
    new = repaired(held, version)
    is_same = all(new[name] == held[name] for name in held if name != "version")
    content_hash = row.content_hash if is_same else _revisions.content_hash(_content(row, new))
    return (row.pk, *(new[name] for name in REPAIRED), content_hash)


def _content(row, new: dict[str, Any]) -> dict[str, Any]:
    found = {name: new.get(name, getattr(row, name, None)) for name in _revisions.CONTENT if name not in JSON}
    return found | {name: json.loads(new[name]) for name in JSON}


def _add_first_revisions(skills, revisions, new, using: str) -> None:
    """Give the skills that have no revision their first, as 0007 does."""
    made = [
        revisions(
            organization_id=row.organization_id,
            end_user_id=row.end_user_id,
            skill_id=row.pk,
            action="migrate",
            author_kind="import",
            rationale="Repaired where it broke the rules of today.",
            content_hash=_revisions.content_hash(content),
            version=values["version"],
            state="published",
            **content,
        )
        for row, values in new
        if row.current_revision_id is None
        for content in [_content(row, values)]
    ]
    if made:
        revisions.objects.using(using).bulk_create(made)
        current = [(revision.skill_id, revision.pk) for revision in made]
        update(skills, {"current_revision": "text"}, current, using)


def _run(statement: str, rows: list[tuple[Any, ...]], using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute(statement, [list(values) for values in zip(*rows, strict=True)])


def restore(apps, schema_editor):
    revisions = apps.get_model("skills", "SkillRevision")
    using = schema_editor.connection.alias
    kept = revisions.objects.filter(source__has_key="before_repair")
    for batch in batches(kept.only("pk"), using):
        with connections[using].cursor() as cursor:
            for statement in (RESTORE_SKILLS, RESTORE_REVISIONS, RESTORE_SOURCES):
                cursor.execute(statement, [[row.pk for row in batch]])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("skills", "0012_skill_embedding")]
    operations = [migrations.RunPython(repair, restore)]
