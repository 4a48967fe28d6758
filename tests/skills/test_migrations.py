"""The way from the flat table of procedural memories to skills, and back, on rows as odd as they come."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from django.db import connection
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from skills.content import Content, entry_type_of
from skills.interop import legacy
from skills.models import Skill, SkillRevision
from tests.factories import make_client, make_content, make_owner, make_proposal, make_skill
from tests.skills.conftest import START
from tests.skills.walks import forward, migrate

names = importlib.import_module("skills.migrations.0003_names")
texts = importlib.import_module("skills.migrations.0004_texts")
revisions = importlib.import_module("skills.migrations.0007_first_revisions")
batches = importlib.import_module("skills.migrations._batches")

storable = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
leaves = st.text(alphabet='ab 1.\n"[', max_size=12) | st.none() | st.booleans() | st.integers()
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
)


def skill_names(owner) -> list[str]:
    return list(Skill.objects.for_owner(owner).order_by("created_at").values_list("name", flat=True))


def test_a_row_becomes_a_published_skill(flat):
    owner = make_owner()
    client = make_client(owner.organization)
    row = {
        "entry_type": "How-to note",
        "summary": "Pay an order with a stored card.",
        "steps": ["Ask which card.", "Charge it."],
        "filter_tags": {"scope": "billing", "session_id": "s-1"},
        "last_modify": {"operation": "created", "timestamp": "2026-01-01T00:00:00"},
        "client_id": client.pk,
    }
    pk = flat(owner, **row)

    forward()

    skill = Skill.objects.get()
    assert (skill.pk, skill.organization, skill.end_user) == (pk, owner.organization, owner.end_user)
    assert Content.of(skill) == Content(
        name="pay-an-order-with-a-stored-card",
        entry_type="guide",
        description="Pay an order with a stored card.",
        instructions="1. Ask which card.\n2. Charge it.",
        filter_tags={"scope": "billing"},
    )
    assert (skill.version, skill.status, skill.triggers, skill.examples) == ("0.1.0", "active", [], [])
    assert (skill.created_at, skill.updated_at) == (START, START)
    revision = SkillRevision.objects.get()
    assert skill.current_revision == revision
    assert (revision.skill, revision.action, revision.author_kind) == (skill, "migrate", "import")
    assert (revision.state, revision.version, revision.base) == ("published", "0.1.0", None)
    assert Content.of(revision) == Content.of(skill)
    assert revision.content_hash == Content.of(skill).hash
    assert revision.source == {
        "summary": row["summary"],
        "steps": row["steps"],
        "flat_entry_type": row["entry_type"],
        "flat_filter_tags": row["filter_tags"],
        "last_modify": row["last_modify"],
        "client_id": client.pk,
    }


def test_names_are_slugs_unique_among_their_owner(flat):
    alice, bob = make_owner(user_id="alice"), make_owner(user_id="bob")
    summaries = {
        "Task": "task",
        "task ": "task-3",
        "Task!": "task-4",
        "Task 2": "task-2-2",
        "task-2": "task-2",
        "  ": "skill-roc-0005",
        "!!! ???": "skill-roc-0006",
        "日本語 手順": "skill-roc-0007",
        "🚀": "skill-roc-0008",
        "Ünïcode Café déjà": "unicode-cafe-deja",
        "snake_case name": "snake-case-name",
        "a - b -- c": "a-b-c",
        "-lead trail-": "lead-trail",
        "How-to: fix (v2)": "how-to-fix-v2",
        "Deploy the App!": "deploy-the-app",
        "deploy the app": "deploy-the-app-2",
        "word " * 20: "word-word-word-word-word-word-word-word-word-word-word-word",
        "x" * 64: "x" * 64,
        "X" * 70: "x" * 60,
        "x" * 61 + "!": "x" * 60 + "-2",
    }
    assert len(set(summaries.values())) == len(summaries)
    for summary in summaries:
        flat(alice, summary=summary)
    flat(alice, summary=None)
    flat(bob, summary="Task")
    flat(bob, summary="task-2")
    long = make_owner()
    for _ in range(12):
        flat(long, summary="y" * 64)

    forward()

    assert skill_names(alice) == [*summaries.values(), "skill-roc-0020"]
    assert skill_names(bob) == ["task", "task-2"]
    assert skill_names(long) == [
        "y" * 64,
        *(f"{'y' * 62}-{number}" for number in range(2, 10)),
        *(f"{'y' * 61}-{number}" for number in range(10, 13)),
    ]


def test_a_run_that_was_interrupted_in_each_step_ends_the_same(flat, monkeypatch):
    owner = make_owner()
    summaries = ("task-2", "Task", "Task", "Task 2", "Task", "!", "!")
    for summary in summaries:
        flat(owner, summary=summary, steps=["Go."])
    monkeypatch.setattr(names, "BATCH", 2)
    monkeypatch.setattr(batches, "BATCH", 2)
    for migration, module in (
        ("0003_names", names),
        ("0004_texts", texts),
        ("0007_first_revisions", revisions),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "update", interrupted_at_second(module.update))
            with pytest.raises(KeyboardInterrupt):
                migrate(migration)

    forward()

    assert skill_names(owner) == [
        "task-2",
        "task",
        "task-3",
        "task-2-2",
        "task-4",
        "skill-roc-0005",
        "skill-roc-0006",
    ]
    assert set(Skill.objects.values_list("instructions", flat=True)) == {"1. Go."}
    assert SkillRevision.objects.count() == len(summaries)
    assert not Skill.objects.filter(current_revision=None).exists()


def interrupted_at_second(update):
    calls = count(1)

    def interrupted(*arguments):
        if next(calls) == 2:
            raise KeyboardInterrupt
        update(*arguments)

    return interrupted


def test_backwards_and_forwards_again_changes_nothing(flat):
    owner = make_owner()
    rows = [
        {
            "summary": "Task",
            "steps": ["One", {"then": ["two"]}],
            "entry_type": "SOP",
            "filter_tags": {"a": 1},
        },
        {"summary": None, "steps": None, "filter_tags": None},
        {"summary": "Task", "steps": '["as text"]', "last_modify": {"operation": "created"}},
    ]
    for row in rows:
        flat(owner, **row)
    before = list(flat.model.objects.order_by("pk").values())
    forward()
    skills = list(Skill.objects.order_by("pk").values())

    back = migrate("0001_initial").get_model("skills", "ProceduralMemory")
    after = list(back.objects.order_by("pk").values())
    for row in after:
        assert row["last_modify"].pop("skill").keys() == {"name", "triggers", "examples", "version", "status"}
    assert after == before
    forward()

    again = list(Skill.objects.order_by("pk").values())
    for row in (*skills, *again):
        assert row.pop("current_revision_id").startswith("rev-")
    assert again == skills


def test_the_empty_table_walks_both_ways(flat):
    for _ in range(2):
        forward()
        assert not Skill.objects.exists()
        assert not SkillRevision.objects.exists()
        assert not migrate("0001_initial").get_model("skills", "ProceduralMemory").objects.exists()


def test_names_statuses_and_versions_outlive_the_way_back_whatever_became_of_the_others(flat):
    owner = make_owner()
    for _ in range(3):
        flat(owner, summary="Task", steps=["Go."])
    flat(owner, summary="Task", steps=["Go."], last_modify=["no", "object"])
    forward()
    first, second, third, fourth = Skill.objects.order_by("pk")
    content = replace(Content.of(first), name="renamed", instructions='["looks", "like JSON"]\n')
    edit = make_proposal(owner, content, first, state="published", version="0.1.1")
    for name, value in (content.as_fields() | {"current_revision": edit, "version": "0.1.1"}).items():
        setattr(first, name, value)
    first.save()
    Skill.objects.filter(pk=second.pk).update(status="archived", version="0.1.4")
    third.current_revision = None
    third.save()
    third.delete()

    back = migrate("0001_initial").get_model("skills", "ProceduralMemory")
    assert list(back.objects.order_by("pk").values_list("summary", "steps")) == [
        ("Task", '["looks", "like JSON"]\n'),
        ("Task", ["Go."]),
        ("Task", ["Go."]),
    ]
    forward()

    again = Skill.objects.order_by("pk").values_list("pk", "name", "instructions", "version", "status")
    assert list(again) == [
        (first.pk, "renamed", '["looks", "like JSON"]\n', "0.1.1", "active"),
        (second.pk, "task-2", "1. Go.", "0.1.4", "archived"),
        (fourth.pk, "task-4", "1. Go.", "0.1.0", "active"),
    ]
    sources = SkillRevision.objects.order_by("skill_id").values_list("source__last_modify", flat=True)
    assert list(sources) == [{"operation": "flattened"}, {}, ["no", "object"]]


def test_json_that_python_cannot_read_passes_to_the_letter(flat):
    owner = make_owner()
    deep = "[" * 3_000 + '"bottom"' + "]" * 3_000
    odd = {
        "steps": [deep, "[1.10, 1e2, %s]" % ("9" * 5_000), "null", '"[1.10]"'],
        "filter_tags": ['{"a": 1.10}', "null", deep, "[]"],
        "last_modify": ["{}", deep, "[1.10]", "null"],
    }
    pks = [flat(owner, summary=None) for _ in odd["steps"]]
    select = (
        "SELECT steps::text, filter_tags::text, last_modify::text FROM skills_proceduralmemory ORDER BY id"
    )
    with connection.cursor() as cursor:
        for column, values in odd.items():
            for pk, value in zip(pks, values, strict=True):
                statement = f"UPDATE skills_proceduralmemory SET {column} = %s::jsonb WHERE id = %s"
                cursor.execute(statement, [value, pk])
        cursor.execute(select)
        before = cursor.fetchall()

    forward()

    skills = list(Skill.objects.order_by("pk"))
    assert skills[0].instructions == deep
    assert skills[1].instructions == f"1. 1.10\n2. 100\n3. {'9' * 5_000}"
    assert [skill.instructions for skill in skills[2:]] == ["", "1. 1.10"]
    assert [skill.filter_tags for skill in skills] == [{"a": 1.1}, {}, {}, {}]
    assert all(len(skill.description) <= 1_024 for skill in skills)
    sources = list(SkillRevision.objects.order_by("skill_id").values_list("source", flat=True))
    assert [source.get("as_text") for source in sources] == [
        ["steps"],
        ["steps", "last_modify"],
        ["flat_filter_tags"],
        None,
    ]
    assert sources[0]["steps"] == deep
    migrate("0001_initial")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE skills_proceduralmemory SET last_modify ="
            " coalesce(last_modify->'skill'->'last_modify', last_modify - 'skill')"
        )
        cursor.execute(select)
        after = cursor.fetchall()
    assert after == [
        tuple(None if text == "null" and at < 2 else text for at, text in enumerate(row)) for row in before
    ]


def generated(rows: st.SearchStrategy[Any], cases: int) -> list[Any]:
    """Return so many generated cases, to be walked through the chain all at once: a walk takes seconds."""
    found = []

    @settings(max_examples=cases, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    @given(rows)
    def collect(case: Any) -> None:
        found.append(case)

    collect()
    return found


@pytest.mark.soak
def test_generated_rows_walk_there_and_back(flat):
    cases = generated(
        st.lists(
            st.tuples(
                st.none()
                | st.text(alphabet="aA1-2_! é日🚀", max_size=70)
                | st.text(storable, max_size=1_100),
                json_values,
                st.text(storable, max_size=20) | st.sampled_from(["how-to", "SOP", "Code"]),
                st.integers(0, 1),
            ),
            max_size=30,
        ),
        cases=500 if os.environ.get("MIRIX_SOAK") else 50,
    )
    model, rows = flat.model, [row for case in cases for row in case]
    for case, owned in enumerate(cases):
        owners = [make_owner(), make_owner()]
        model.objects.bulk_create(
            model(
                id=f"proc_{case:04d}{number:04d}",
                organization_id=owners[whose].organization.pk,
                end_user_id=owners[whose].end_user.pk,
                entry_type=kind,
                summary=summary,
                steps=steps,
            )
            for number, (summary, steps, kind, whose) in enumerate(owned)
        )
    flat_rows = list(model.objects.order_by("pk").values())

    forward()

    skills = list(Skill.objects.order_by("pk"))
    assert len(skills) == SkillRevision.objects.count() == len(rows)
    assert len({(skill.end_user_id, skill.name) for skill in skills}) == len(rows)
    for skill, row in zip(skills, flat_rows, strict=True):
        summary, steps = (
            row["summary"],
            row["steps"],
        )  # jsonb has an order of its own for the keys of an object
        assert legacy.is_valid_name(skill.name)
        assert skill.entry_type == entry_type_of(row["entry_type"])
        assert (skill.description, skill.instructions) == legacy.texts(summary, steps)
        everything = f"{skill.description} {skill.instructions}"
        words = [*(summary or "").split(), *words_of(steps)]
        assert all(word in everything for word in words if len(word) < 500)
    contents = [Content.of(skill) for skill in skills]
    back = migrate("0001_initial").get_model("skills", "ProceduralMemory")
    again = list(back.objects.order_by("pk").values())
    for row in again:
        row["last_modify"].pop("skill")
    assert again == flat_rows
    forward()
    assert [Content.of(skill) for skill in Skill.objects.order_by("pk")] == contents


def test_skills_that_never_were_flat_survive_the_way_back(flat):
    forward()
    assert not Skill.objects.exists()
    owner = make_owner()
    content = make_content(
        name="pay-an-order",
        description="Use it; a summary like any other.",
        instructions="Just text.\n\n1. Ask.",
        entry_type="script",
        triggers=["pay"],
        examples=[{"input": "a", "output": None}],
        filter_tags={"team": "billing"},
    )
    skill = make_skill(owner, content, version="0.1.7", status="archived")
    make_proposal(owner, skill=skill)

    migrate("0001_initial")
    forward()

    again = Skill.objects.get()
    assert Content.of(again) == content
    assert (again.pk, again.version, again.status) == (skill.pk, "0.1.7", "archived")
    assert SkillRevision.objects.get().action == "migrate"


class TestFrozenCopies:
    """What the migrations did stays as it was; as long as today's functions say the same, this holds."""

    @given(st.text(max_size=90), st.text(max_size=20))
    def test_of_names_agree_with_todays(self, text, row_id):
        assert names.slug_of(text, row_id) == legacy.base_name(text, row_id)
        assert names.is_valid(text) == legacy.is_valid_name(text)

    @given(
        st.lists(st.text(alphabet="aA1-2! é", max_size=70), max_size=30), st.sets(st.text("a1-", max_size=4))
    )
    def test_of_unique_names_agree_with_todays(self, summaries, given_names):
        rows = [(f"proc-{number}", summary) for number, summary in enumerate(summaries)]

        def give(module, own_name, base_name):
            brought = [(pk, name) for pk, text in rows if (name := own_name(text))]
            book = module.Names(brought, given_names)
            return [book.name_for(pk, own_name(text), base_name(text, pk)) for pk, text in rows]

        frozen = give(names, lambda text: names.own_name(text, None), names.slug_of)
        assert frozen == give(
            legacy, lambda text: text if legacy.is_valid_name(text) else None, legacy.base_name
        )
        assert not given_names & set(frozen)

    @given(st.text(max_size=1_200), json_values)
    def test_of_texts_agree_with_todays(self, summary, steps):
        assert texts.texts(summary, steps) == legacy.texts(summary, steps)
        written = json.dumps(steps)
        assert texts.texts(summary, written) == legacy.texts(summary, written)
        assert texts.readable(texts.parsed(written)) == legacy.readable(legacy.parsed(written))

    @given(st.dictionaries(st.sampled_from(["session_id", "scope", "a"]), st.integers()) | json_values)
    def test_of_tags_agree_with_todays(self, value):
        assert texts.tags(value) == legacy.tags(value)

    @given(st.lists(st.sampled_from([word for _, words in texts.KINDS for word in words]) | st.text()))
    def test_of_kinds_agree_with_the_lenient_reader(self, words):
        for text in ("".join(words), " ".join(words).upper()):
            assert texts.entry_type(text) == entry_type_of(text)


@pytest.mark.parametrize(
    ("change", "is_ours"),
    [
        ({}, True),
        ({"triggers": ["pay"] * 50, "version": "1.2.3-rc.1"}, True),
        ({"triggers": ["pay"] * 51, "examples": {}, "version": "2"}, True),  # 0013 repairs those
        ({"version": 2}, False),
        ({"version": "1.2.3-" + "x" * 32}, False),
        ({"status": "gone"}, False),
        ({"status": []}, False),
    ],
)
def test_only_what_the_columns_can_hold_passes_for_what_a_row_kept_of_a_skill(change, is_ours):
    kept = {"name": "pay", "triggers": [], "examples": [], "version": "0.1.0", "status": "active"} | change

    assert texts.carried(json.dumps(kept)) == (kept if is_ours else {})


def test_a_batch_is_bounded_by_bytes_too(owner, monkeypatch):
    for size in (10, 3_000, 3_000, 9_000, 10, 10):
        make_skill(
            owner, make_content(name=f"pay-{size}-{Skill.objects.count()}", instructions="é" * (size // 2))
        )
    monkeypatch.setattr(batches, "MAX_BYTES", 8_000)

    found = [
        [len(row.instructions) * 2 for row in batch]
        for batch in batches.batches(Skill.objects.all(), "default")
    ]

    sizes = [len(row.instructions) * 2 for row in Skill.objects.order_by("pk")]
    assert [size for batch in found for size in batch] == sizes
    assert all(len(batch) == 1 or sum(batch) < 8_000 for batch in found)
    assert 3 <= len(found) < 6
    assert (batches.how_many([]), batches.how_many([9_000, 1]), batches.how_many([4_000] * 5)) == (0, 1, 2)


@given(st.lists(st.text(alphabet="aA1-2! é", max_size=70), max_size=30))
def test_names_are_valid_unique_and_stable(summaries):
    rows = [(f"proc-{number}", summary) for number, summary in enumerate(summaries)]

    def give(given: dict[str, str]) -> dict[str, str]:
        brought = [(pk, name) for pk, text in rows if (name := names.own_name(text, None))]
        book = names.Names(brought, given.values())
        return given | {
            pk: book.name_for(pk, names.own_name(text, None), names.slug_of(text, pk))
            for pk, text in rows
            if pk not in given
        }

    whole = give({})

    assert all(names.is_valid(name) for name in whole.values())
    assert len(set(whole.values())) == len(rows)
    for done in range(len(rows)):
        assert give(dict(list(whole.items())[:done])) == whole


@pytest.mark.parametrize(
    ("row_id", "name"),
    [
        ("proc_A1B2", "skill-roc-a1b2"),
        ("A1", "skill-a1"),
        ("proc-日本語日本語日本", "skill"),
        ("proc_________", "skill"),
    ],
)
def test_without_a_slug_the_id_gives_the_name(row_id, name):
    assert names.slug_of(" ", row_id) == name
    assert names.is_valid(name)


@pytest.mark.parametrize(
    ("steps", "instructions"),
    [
        (None, ""),
        ([], ""),
        ({}, ""),
        ("", ""),
        (["Ask.", "Charge."], "1. Ask.\n2. Charge."),
        (["1. Ask.", "2. Charge."], "1. Ask.\n2. Charge."),
        (["1) Ask", "Note: careful"], "1) Ask\nNote: careful"),
        (["Step 1: ask", "Step 2: charge"], "Step 1: ask\nStep 2: charge"),
        (["- ask", "- charge"], "- ask\n- charge"),
        (["1.5 litres of water", "10:30 lunch"], "1. 1.5 litres of water\n2. 10:30 lunch"),
        (["Ask.", None, "  ", "Charge."], "1. Ask.\n2. Charge."),
        (["Run:\nmake\nmake test", "Done"], "1. Run:\n   make\n   make test\n2. Done"),
        (["Ask.", ["card", "cash"]], "1. Ask.\n2. 1. card\n   2. cash"),
        (["Ask.", {"tool": "pay", "retry": True}], "1. Ask.\n2. tool: pay\n   retry: true"),
        ("Just do it.", "Just do it."),
        ('"Just do it."', "Just do it."),
        ('["Ask.", "Charge."]', "1. Ask.\n2. Charge."),
        ('{"first": "Ask."}', "first: Ask."),
        ("[not json", "[not json"),
        ('["\\ud800"]', '["\\ud800"]'),
        ('["\\u0000"]', '["\\u0000"]'),
        ("[" * 5_000, "[" * 5_000),
        (
            {"first": "Ask.", "then": ["Charge.", 7], "never": None},
            "first: Ask.\nthen:\n  1. Charge.\n  2. 7\nnever:",
        ),
        (42, "42"),
        (False, "false"),
    ],
)
def test_every_shape_of_steps_becomes_readable(steps, instructions):
    assert texts.texts("", steps)[1] == instructions


def test_nesting_has_an_end():
    steps: Any = "bottom"
    for _ in range(200):
        steps = [steps]

    assert "bottom" in texts.readable(steps)


def test_a_summary_over_the_cap_goes_on_in_the_instructions():
    summary = "word " * 204 + "antidisestablishmentarianism and more"

    description, instructions = texts.texts(summary, ["Ask."])

    assert description == ("word " * 204).strip()
    assert instructions == "antidisestablishmentarianism and more\n\n1. Ask."
    assert texts.texts("x" * 1_030, None) == ("x" * 1_024, "x" * 6)


def test_a_blank_summary_borrows_the_first_step():
    assert texts.texts(" ", ["Ask which card.", "Charge it."]) == (
        "Ask which card.",
        "1. Ask which card.\n2. Charge it.",
    )
    assert texts.texts(None, None) == ("", "")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("workflow", "workflow"),
        ("guide", "guide"),
        ("script", "script"),
        (" Script ", "script"),
        ("how-to", "guide"),
        ("How to run a script", "guide"),
        ("show process", "guide"),
        ("process", "workflow"),
        ("Standard procedure", "workflow"),
        ("SOP", "workflow"),
        ("runbook for scripts", "workflow"),
        ("code", "script"),
        ("shell command", "script"),
        ("snippet", "script"),
        ("user manual", "guide"),
        ("", "workflow"),
        (None, "workflow"),
        ("whatever", "workflow"),
    ],
)
def test_every_kind_becomes_one_of_three(text, kind):
    assert texts.entry_type(text) == kind


def words_of(value: Any) -> list[str]:
    match value:
        case dict():
            return [word for key, item in value.items() for word in (*key.split(), *words_of(item))]
        case list():
            return [word for item in value for word in words_of(item)]
        case str():
            return value.replace('"', " ").replace("[", " ").split()
        case None:
            return []
    return [json.dumps(value)]


@given(st.text(max_size=1_200), json_values)
def test_no_text_is_lost(summary, steps):
    description, instructions = texts.texts(summary, steps)

    assert len(description) <= 1_024
    everything = f"{description} {instructions}"
    assert all(word in everything for word in [*summary.split(), *words_of(steps)] if len(word) < 500)


@given(
    st.text(max_size=20), st.lists(st.text(max_size=5)), st.dictionaries(st.text(max_size=3), st.integers())
)
def test_the_frozen_hash_agrees_with_todays(text, triggers, tags):
    content = Content(name=text, description=text, instructions=text, triggers=triggers, filter_tags=tags)

    assert revisions.content_hash(content.as_fields()) == content.hash


@pytest.mark.soak
def test_many_rows_of_one_name(flat):
    owner = make_owner()
    rows = 50_000 if os.environ.get("MIRIX_SOAK") else 2_500
    flat.model.objects.bulk_create(
        flat.model(
            id=f"proc_{number:06d}",
            organization_id=owner.organization.pk,
            end_user_id=owner.end_user.pk,
            entry_type="process",
            summary="The same summary",
            steps=["Go."],
        )
        for number in range(rows)
    )

    forward()

    assert Skill.objects.count() == SkillRevision.objects.count() == rows
    assert set(Skill.objects.values_list("name", flat=True)) == {
        "the-same-summary",
        *(f"the-same-summary-{number}" for number in range(2, rows + 1)),
    }
