"""The items of an answer: read kindly, one by one, and never more of them than there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skills.evolution.reply import (
    MAX_ENTRIES,
    MAX_SHOWN_CHARS,
    MAX_TEXT_CHARS,
    OperationItem,
    read_item,
    shown,
)
from tests.skills.evolution.answers import create, edit


def read(item: dict[str, Any]) -> OperationItem:
    found = read_item(item)
    assert isinstance(found, OperationItem)
    return found


def test_an_item_as_asked_for_is_read_as_it_is():
    given_item = edit("proc-1", "sexp-1", changes=[("old \n", " new")], triggers=["a"])
    assert read(given_item).model_dump() == given_item


@pytest.mark.parametrize(
    ("given_item", "field", "expected"),
    [
        ({"action": "none"}, "experiences", []),
        ({"action": " None"}, "action", "none"),
        ({"action": "`edit`"}, "action", "edit"),
        ({"action": "none", "experiences": "sexp-1"}, "experiences", ["sexp-1"]),
        ({"action": "none", "experience_ids": ["[sexp-1]"]}, "experiences", ["sexp-1"]),
        ({"action": "none", "Skill ID": "proc-1"}, "skill", "proc-1"),
        ({"action": "none", "superseded": None}, "superseded", []),
        ({"action": "none", "superseded": [{"old": "", "by": ""}]}, "superseded", []),
        ({"action": "none", "triggers": None}, "triggers", []),
        ({"action": "none", "instructions": "a\u200bb\u202e"}, "instructions", "ab"),
        ({"action": "none", "description": "cafe\u0301"}, "description", "café"),
        ({"action": "none", "reason": "x" * 100_000}, "reason", "x" * MAX_TEXT_CHARS),
        ({"action": "none", "triggers": ["t"] * 99}, "triggers", ["t"] * MAX_ENTRIES),
        ({"action": "none", "whatever": {"deep": []}}, "name", ""),
    ],
)
def test_what_is_clear_is_put_right(given_item, field, expected):
    assert getattr(read(given_item), field) == expected


def test_a_replacement_may_leave_out_the_field_and_use_other_names():
    item = read({"action": "edit", "replacements": {"old_text": " a ", "new_text": "b"}})
    assert item.replacements[0].model_dump() == {"field": "instructions", "old": " a ", "new": "b"}


def test_one_pair_of_lessons_is_a_list_of_one():
    item = read({"action": "none", "superseded": {"old": "[sexp-1]", "by": " sexp-2"}})
    assert [pair.model_dump() for pair in item.superseded] == [{"old": "sexp-1", "by": "sexp-2"}]


@pytest.mark.parametrize(
    ("given_item", "reason"),
    [
        ({}, "The action is none of create, edit, none."),
        ({"action": "delete"}, "The action is none of create, edit, none."),
        ({"action": ["edit"]}, "The action is none of create, edit, none."),
        ({"action": "edit", "name": 7}, "name: Input should be a valid string."),
        ({"action": "edit", "replacements": ["s/a/b/"]}, "replacements.0: "),
        (
            {"action": "edit", "replacements": [{"field": "name", "old": "a", "new": "b"}]},
            "replacements.0.field: ",
        ),
        ({"action": "create", "triggers": [{}]}, "triggers.0: "),
        ({"action": "none", "superseded": ["sexp-1"]}, "superseded.0: "),
        ({"action": "none", "superseded": [{"old": 7, "by": "sexp-1"}]}, "superseded.0.old: "),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_field(given_item, reason):
    found = read_item(given_item)
    assert isinstance(found, str)
    assert found.startswith(reason)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(list(OperationItem.model_fields))


@given(st.dictionaries(names | st.text(max_size=8), json_values, max_size=9))
def test_any_object_is_read_or_refused_with_a_reason(item):
    found = read_item(item)
    assert isinstance(found, OperationItem) or (found.endswith(".") and len(found) < 300)
    assert len(shown(item)) <= MAX_SHOWN_CHARS


def test_a_new_skill_is_read_whole():
    assert read(create("sexp-1")).instructions == "1. Ask for the reason.\n2. Call `cancel_order` with it.\n"
