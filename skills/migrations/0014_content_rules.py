"""Schema: what must hold of every list, version and choice of a skill and of its revisions.

Not yet of the rows that exist, for which 0015 asks: so the tables are locked for a moment and not for a scan.
"""

from __future__ import annotations

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

SEMANTIC = (
    r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})"
    r"(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$"
)
# What Python can read again: at most 100 levels, and no whole number of over 4,300 digits.
READABLE = (
    '!exists($.**{100} ? (@.type() == "array" || @.type() == "object"))'
    ' && !exists($.** ? (@.type() == "number" && (@ >= 1e4300 || @ <= -1e4300)))'
)
LIST = f'strict $.type() == "array" && $.size() <= 50 && {READABLE}'
OBJECT = f'strict $.type() == "object" && {READABLE}'
ACTIONS = [
    *("create", "edit", "import", "migrate", "rollback"),
    *("archive", "restore", "quarantine", "release"),
]


def of_json(field: str, path: str) -> models.Func:
    return models.Func(
        models.F(field),
        models.Value(path),
        function="jsonb_path_match",
        output_field=models.BooleanField(),
    )


RULES = [
    ("skill", "skill_triggers_list", of_json("triggers", LIST)),
    ("skill", "skill_examples_list", of_json("examples", LIST)),
    ("skill", "skill_filter_tags_object", of_json("filter_tags", OBJECT)),
    ("skill", "skill_version_semantic", models.Q(version__regex=SEMANTIC)),
    (
        "skillrevision",
        "revision_entry_type_valid",
        models.Q(entry_type__in=["workflow", "guide", "script"]),
    ),
    ("skillrevision", "revision_triggers_list", of_json("triggers", LIST)),
    ("skillrevision", "revision_examples_list", of_json("examples", LIST)),
    ("skillrevision", "revision_filter_tags_object", of_json("filter_tags", OBJECT)),
    (
        "skillrevision",
        "revision_version_semantic",
        models.Q(version="") | models.Q(version__regex=SEMANTIC),
    ),
    (
        "skillrevision",
        "revision_published_has_version",
        ~models.Q(state="published") | ~models.Q(version=""),
    ),
    ("skillrevision", "revision_action_valid", models.Q(action__in=ACTIONS)),
    (
        "skillrevision",
        "revision_author_kind_valid",
        models.Q(author_kind__in=["llm", "offline", "human", "import", "demo"]),
    ),
]


class Migration(migrations.Migration):
    dependencies = [("skills", "0013_repair_content")]
    operations = [
        AddConstraintNotValid(model, models.CheckConstraint(condition=condition, name=name))
        for model, name, condition in RULES
    ]
