"""What the database itself refuses of skills and revisions, whoever writes."""

from __future__ import annotations

import json

import pytest
from django.db import IntegrityError, connection, transaction

from skills.models import Skill, SkillRevision
from tests.factories import make_skill

OF_BOTH = [
    ("name_slug", {"name": "Pay"}),
    ("entry_type_valid", {"entry_type": "process"}),
    *(
        (f"{field}_list", {field: value})
        for field in ("triggers", "examples")
        for value in ({}, "pay", 7, [["pay"]] * 51)
    ),
    *(("filter_tags_object", {"filter_tags": value}) for value in ([], [{}], "team", 7)),
    *(
        ("version_semantic", {"version": version})
        for version in ("1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3\n", "1.2.٣", "x\n1.2.3")
    ),
]
OF_SKILLS = [
    ("skill_status_valid", {"status": "gone"}),
    ("skill_version_semantic", {"version": ""}),
]
OF_REVISIONS = [
    ("revision_published_has_version", {"version": ""}),
    ("revision_action_valid", {"action": "delete"}),
    ("revision_author_kind_valid", {"author_kind": "robot"}),
    ("revision_state_valid", {"state": "lost"}),
]


@pytest.mark.parametrize(
    ("model", "rule", "change"),
    [
        *((Skill, f"skill_{rule}", change) for rule, change in OF_BOTH),
        *((SkillRevision, f"revision_{rule}", change) for rule, change in OF_BOTH),
        *((Skill, *case) for case in OF_SKILLS),
        *((SkillRevision, *case) for case in OF_REVISIONS),
    ],
)
def test_the_database_refuses(owner, model, rule, change):
    make_skill(owner)

    with pytest.raises(IntegrityError, match=f'"{rule}"'), transaction.atomic():
        model.objects.for_owner(owner).update(**change)


@pytest.mark.parametrize("odd", ["[" * 100 + "]" * 100, '{"a":' * 100 + "1" + "}" * 100, "9" * 4_301])
@pytest.mark.parametrize("column", ["triggers", "examples", "filter_tags"])
@pytest.mark.parametrize("model", [Skill, SkillRevision])
def test_the_database_refuses_what_python_could_not_read(owner, model, column, odd):
    make_skill(owner)
    value = f'{{"a": {odd}}}' if column == "filter_tags" else f"[{odd}]"
    update = f"UPDATE {model._meta.db_table} SET {column} = %s"

    with pytest.raises(IntegrityError, match=column), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(update, [value])


def test_the_database_holds_the_most_of_everything(owner):
    make_skill(owner)
    most = {
        "triggers": ["pay"] * 50,
        "examples": [json.loads("[" * 99 + "]" * 99), 10**4_299, *[[]] * 48],
        "instructions": "i" * 65_537,
        "version": "1.2.3-rc.1+build",
    }

    for model in (Skill, SkillRevision):
        assert model.objects.for_owner(owner).update(**most) == 1


def test_only_what_was_published_needs_a_version(owner):
    make_skill(owner)

    for state in ("proposed", "rejected", "superseded"):
        assert SkillRevision.objects.for_owner(owner).update(state=state, version="") == 1
