"""Rows that the rules of the database would refuse: what a migration makes of them, and of the way back."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from hypothesis import given
from hypothesis import strategies as st

from skills.content import Content, entry_type_of
from skills.models import Skill, SkillRevision
from tests.factories import make_content, make_owner, make_proposal, make_skill
from tests.skills.test_migrations import interrupted_at_second, json_values, words_of
from tests.skills.walks import forward, migrate

repair = importlib.import_module("skills.migrations.0013_repair_content")
rules = importlib.import_module("skills.migrations.0014_content_rules")
batches = importlib.import_module("skills.migrations._batches")

BEFORE = "0012_skill_embedding"
ALL = "SELECT to_jsonb(row)::text FROM {} AS row ORDER BY id"


@contextmanager
def todays_columns() -> Iterator[None]:
    """Lend the old tables the columns that later migrations add, so that today's models can write rows."""
    added = []
    with connection.cursor() as cursor:
        for model in (Skill, SkillRevision):
            table = model._meta.db_table
            there = {column.name for column in connection.introspection.get_table_description(cursor, table)}
            for field in model._meta.local_concrete_fields:
                if field.column not in there:
                    cursor.execute(
                        f"ALTER TABLE {table} ADD COLUMN {field.column} {field.db_type(connection)}"
                    )
                    added.append((table, field.column))
    yield
    with connection.cursor() as cursor:
        for table, column in added:
            cursor.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


@pytest.fixture
def odd(copy_at):
    """Stand before the rules; change a skill and its revision by `odd(owner, column=…)`."""

    def make(owner, *, of: tuple[str, ...] = ("skill", "skillrevision"), **columns: Any) -> Skill:
        with todays_columns():
            skill = make_skill(
                owner, make_content(name=f"pay-{Skill.objects.count()}", instructions="1. Ask.")
            )
        for table in of:
            for column, value in columns.items():
                sql = f"UPDATE skills_{table} SET {column} = %s WHERE {OWN[table]} = %s"
                with connection.cursor() as cursor:
                    cursor.execute(sql, [value, skill.pk])
        return skill

    with copy_at(BEFORE):
        yield make


OWN = {"skill": "id", "skillrevision": "skill_id"}


def stored() -> list[str]:
    """Every skill and revision, to the letter."""
    found = []
    with connection.cursor() as cursor:
        for table in ("skills_skill", "skills_skillrevision"):
            cursor.execute(ALL.format(table))
            found += [text for (text,) in cursor.fetchall()]
    return found


DEEP = f"[{'1, ' * 50}{'[' * 3_000}{']' * 3_000}]"
FEW_DEEP = f"{'[' * 600}{']' * 600}"
HUGE = "7" * 5_000
MANY = [f"pay {number}" for number in range(53)]
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"triggers": json.dumps(MANY)}, {
        "triggers": MANY[:50],
        "instructions": "1. Ask.\n\n## More triggers\n\n1. pay 50\n2. pay 51\n3. pay 52",
    }),
    ({"triggers": "null"}, {"triggers": []}),
    ({"triggers": '"Pay the bill"'}, {"triggers": ["Pay the bill"]}),
    ({"triggers": r'"[\"pay\", \"owe\"]"'}, {"triggers": ["pay", "owe"]}),
    ({"triggers": r'"[\"\\u0000\"]"'}, {"triggers": [r'["\u0000"]']}),
    ({"triggers": '{"when": "pay", "or": 1.10}'}, {"triggers": ["or: 1.1", "when: pay"]}),
    ({"triggers": json.dumps("x" * 513)}, {
        "triggers": [],
        "instructions": f"1. Ask.\n\n## More triggers\n\n1. {'x' * 513}",
    }),
    ({"examples": "7"}, {"examples": [{"example": 7}]}),
    ({"examples": '{"input": "a"}'}, {"examples": [{"input": "a"}]}),
    ({"examples": json.dumps([{"n": number} for number in range(51)])}, {
        "examples": [{"n": number} for number in range(50)],
        "instructions": "1. Ask.\n\n## More examples\n\n1. n: 50",
    }),
    ({"filter_tags": '["team", 1]'}, {"filter_tags": {}}),
    ({"filter_tags": "null"}, {"filter_tags": {}}),
    ({"version": "v1.2"}, {"version": "0.1.0"}),
    ({"version": ""}, {"version": "0.1.0"}),
    ({"version": "1.2.3\n"}, {"version": "0.1.0"}),
    ({"triggers": DEEP}, {"triggers": [], "instructions": f"1. Ask.\n\n## More triggers\n\n1. {DEEP}"}),
    ({"examples": FEW_DEEP}, {"examples": [{"example": FEW_DEEP}]}),
    ({"triggers": FEW_DEEP}, {
        "triggers": [],
        "instructions": f"1. Ask.\n\n## More triggers\n\n1. {FEW_DEEP}",
    }),
    ({"filter_tags": f'{{"a": {FEW_DEEP}}}'}, {"filter_tags": {}}),
    ({"examples": f"[{HUGE}]"}, {"examples": [{"example": f"[{HUGE}]"}]}),
    ({"triggers": "{}", "examples": "null", "filter_tags": "[]", "version": "2"}, {
        "triggers": [], "examples": [], "filter_tags": {}, "version": "0.1.0",
    }),
]  # fmt: skip


def test_every_odd_row_is_repaired_and_comes_back_to_the_letter(odd):
    owner = make_owner()
    fine = odd(owner)
    skills = [odd(owner, **columns) for columns, _ in CASES]
    of_revisions = odd(owner, of=("skillrevision",), entry_type="How-to", triggers="{}")
    unnumbered = odd(owner, of=("skillrevision",), version="")
    of_skills = odd(owner, of=("skill",), version="x", triggers="[1.10, 1e2, 2, 3]", filter_tags="[]")
    before = stored()

    forward()

    for skill, (columns, new) in zip(skills, CASES, strict=True):
        row, revision = Skill.objects.get(pk=skill.pk), SkillRevision.objects.get(skill=skill)
        expected = {"instructions": "1. Ask.", "version": "0.1.0"} | new
        for found in (row, revision):
            assert {name: getattr(found, name) for name in expected} == expected
        assert Content.of(row) == Content.of(revision)
        assert revision.content_hash == Content.of(row).hash
        kept = revision.source["before_repair"]
        for column, value in columns.items():
            text = kept["revision"][column]
            assert text == value if column == "version" else same_json(text, value)
        assert kept["skill"] | {"content_hash": skill.current_revision.content_hash} == kept["revision"]
    assert SkillRevision.objects.get(skill=fine).source is None
    assert SkillRevision.objects.get(skill=of_revisions).entry_type == "guide"
    assert SkillRevision.objects.get(skill=unnumbered).version == "0.1.0"
    assert Skill.objects.get(pk=of_skills.pk).filter_tags == {}
    kept = SkillRevision.objects.get(skill=of_skills).source["before_repair"]
    assert (kept.keys(), kept["skill"]["triggers"]) == ({"skill", "source"}, "[1.10, 100, 2, 3]")
    after = stored()

    migrate(BEFORE)
    assert stored() == before
    forward()
    assert stored() == after


def same_json(text: str, other: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb = %s::jsonb", [text, other])
        return bool(cursor.fetchone()[0])


def test_a_published_version_that_is_missing_is_the_one_of_its_skill(odd):
    skill = odd(make_owner(), version="1.4.0")
    SkillRevision.objects.filter(skill=skill).update(version="")
    with todays_columns():
        make_proposal(make_owner(), version="")

    forward()

    assert SkillRevision.objects.get(skill=skill).version == "1.4.0"
    assert SkillRevision.objects.get(state="proposed").version == ""


@pytest.mark.parametrize("source", [None, [1, "before_repair"], "text", {"database": "theirs"}])
def test_what_a_revision_came_from_stays_with_it(odd, source):
    skill = odd(make_owner(), triggers="{}")
    SkillRevision.objects.filter(skill=skill).update(source=source)
    untouched = odd(make_owner())
    SkillRevision.objects.filter(skill=untouched).update(source=["before_repair"])
    before = stored()

    forward()

    found = SkillRevision.objects.get(skill=skill).source
    kept = found["before_repair"]
    assert (found["database"] if isinstance(source, dict) else kept["source"]) in ("theirs", source)
    migrate(BEFORE)
    assert stored() == before


def test_a_skill_without_a_revision_gets_one_that_keeps_what_it_held(odd):
    owner = make_owner()
    skill = odd(owner, of=("skill",), triggers='"pay"', version="2")
    Skill.objects.update(current_revision=None)
    with todays_columns():
        SkillRevision.objects.all().delete()

    forward()

    skill.refresh_from_db()
    revision = SkillRevision.objects.get()
    assert skill.current_revision == revision
    assert (skill.triggers, skill.version) == (["pay"], "0.1.0")
    assert (revision.action, revision.state, revision.version) == ("migrate", "published", "0.1.0")
    assert revision.content_hash == Content.of(skill).hash == Content.of(revision).hash
    assert revision.source["before_repair"]["skill"]["version"] == "2"
    migrate(BEFORE)
    assert Skill.objects.values_list("triggers", "version").get() == ("pay", "2")


def test_a_skill_that_was_edited_since_stays_as_it_is_on_the_way_back(odd):
    owner = make_owner()
    skill = odd(owner, triggers="{}")
    forward()
    with todays_columns():
        edit = make_proposal(owner, Content.of(skill), skill, state="published", version="0.1.1")
    Skill.objects.update(current_revision=edit, version="0.1.1")

    migrate(BEFORE)

    assert Skill.objects.values_list("triggers", "version").get() == ([], "0.1.1")


def test_what_would_change_its_meaning_is_refused_before_anything_is_touched(odd):
    owner = make_owner()
    odd(owner, triggers="{}")
    first = odd(owner, of=("skillrevision",), action="delete").current_revision_id
    second = odd(owner, of=("skillrevision",), author_kind="robot").current_revision_id
    before = stored()

    with pytest.raises(CommandError) as refused:
        forward()

    assert stored() == before
    message = str(refused.value)
    assert message.startswith("2 rows of skills_skillrevision say what no revision can")
    assert f"{first} (action “delete”, author_kind “human”)" in message
    assert f"{second} (action “create”, author_kind “robot”)" in message
    assert "Set action to one of create, edit, " in message
    assert "author_kind to one of llm, offline, human, import, demo; then run ./run migrate again." in message
    SkillRevision.objects.update(action="edit", author_kind="human")
    forward()
    assert [(skill.name, skill.triggers) for skill in Skill.objects.filter(triggers=[])] == [("pay-0", [])]


def test_a_repair_that_was_interrupted_ends_the_same(odd, monkeypatch):
    owner = make_owner()
    for _ in range(5):
        odd(owner, triggers='"pay"', version="1")
    before = stored()
    monkeypatch.setattr(batches, "BATCH", 2)
    for name in ("_run", "update"):
        with monkeypatch.context() as patch:
            patch.setattr(repair, name, interrupted_at_second(getattr(repair, name)))
            with pytest.raises(KeyboardInterrupt):
                forward()
    assert ("skills", "0013_repair_content") not in MigrationRecorder(connection).applied_migrations()

    forward()

    assert set(Skill.objects.values_list("version", flat=True)) == {"0.1.0"}
    assert [row.triggers for row in (*Skill.objects.all(), *SkillRevision.objects.all())] == [["pay"]] * 10
    kept = SkillRevision.objects.values_list("source__before_repair__skill__version", flat=True)
    assert list(kept) == ["1"] * 5
    migrate(BEFORE)
    assert stored() == before


def test_the_rules_are_asked_of_every_row(odd):
    with connection.cursor() as cursor:
        names = [name for _, name, _ in rules.RULES]
        sql = "SELECT count(*) FROM pg_constraint WHERE convalidated AND conname = ANY(%s)"
        cursor.execute(sql, [names])
        assert cursor.fetchone() == (0,)
        forward()
        cursor.execute(sql, [names])
        assert cursor.fetchone() == (12,)


@given(json_values, json_values, json_values, st.text(max_size=20), st.text(max_size=20))
def test_whatever_a_row_held_fits_the_rules_then_and_no_text_is_lost(triggers, examples, tags, kind, version):
    held = {
        "entry_type": kind,
        "instructions": "1. Ask.",
        "triggers": json.dumps(triggers),
        "examples": json.dumps(examples),
        "filter_tags": json.dumps(tags),
        "version": version,
    }

    new = repair.repaired(held, repair._semantic(version))

    for name in ("triggers", "examples"):
        assert repair.is_list(json.loads(new[name]))
    assert isinstance(json.loads(new["filter_tags"]), dict)
    assert new["entry_type"] == entry_type_of(kind)
    everything = " ".join(new[name].replace('\\"', " ").replace("\\n", "\n") for name in new)
    assert all(word in everything for word in [*words_of(triggers), *words_of(examples)])
    assert repair.repaired(new, new["version"]) == new
