"""What differs between two calls, and what kind of difference it is."""

from __future__ import annotations

from typing import Any

import pytest

from skills.distillation.calls import Call
from skills.distillation.changes import ABSENT, Kind, compare, is_related, kind_of


def call(arguments: Any, tool: str = "f") -> Call:
    return Call(1, tool, arguments)


def test_changes_are_named_by_their_path_with_both_values():
    before = {"id": "A", "flights": [{"no": "H1", "day": 1}, {"no": "H2", "day": 1}], "old": 1}
    after = {"id": "A", "flights": [{"no": "H1", "day": 1}, {"no": "H9", "day": 1}], "new": 2}
    assert [change.as_data() for change in compare(call(before), call(after))] == [
        {"argument": "flights[1].no", "before": "H2", "after": "H9"},
        {"argument": "old", "before": 1},
        {"argument": "new", "after": 2},
    ]


def test_lists_of_different_lengths_change_as_a_whole():
    assert [change.as_data() for change in compare(call({"tags": ["a", "b"]}), call({"tags": ["b"]}))] == [
        {"argument": "tags", "before": ["a", "b"], "after": ["b"]}
    ]


def test_text_and_number_are_not_the_same_value():
    assert [change.as_data() for change in compare(call({"n": "1"}), call({"n": 1}))] == [
        {"argument": "n", "before": "1", "after": 1}
    ]


def test_arguments_that_are_no_object_change_as_arguments():
    assert [change.argument for change in compare(call("ls -x"), call("ls -l"))] == ["arguments"]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (ABSENT, 1, Kind.ADDED),
        (1, ABSENT, Kind.REMOVED),
        ("25", 25, Kind.AS_NUMBER),
        ("64.50", 6450, Kind.AS_NUMBER),
        (25, "25", Kind.AS_TEXT),
        ("true", True, Kind.AS_BOOLEAN),
        ("INV-1", ["INV-1"], Kind.AS_LIST),
        (["INV-1"], "INV-1", Kind.AS_SINGLE),
        ("eur", "EUR", Kind.CASE),
        (" A-1 ", "A-1", Kind.TRIMMED),
        ("def f():\n  return 1", "def f():\n    return 1", Kind.WHITE_SPACE),
        ("14/03/2025", "2025-03-14", Kind.DATE_FORMAT),
        ("Friday", "2025-03-14", Kind.DATE_FORMAT),
        ("March 14, 2025", "2025-03-14", Kind.DATE_FORMAT),
        ("2025-03-14", "2025-03-14T00:00:00Z", Kind.DATE_FORMAT),
        ("2025-03-14", "2025-03-15", Kind.REPLACED),
        ("4711", "ORD-4711", Kind.PREFIX),
        ("#A-4711", "A-4711", Kind.WITHOUT_PREFIX),
        ("report", "report.csv", Kind.SUFFIX),
        ("q3.csv.bak", "q3.csv", Kind.WITHOUT_SUFFIX),
        (500, 100, Kind.LOWER),
        (5, 30, Kind.HIGHER),
        (["a", "b"], ["b"], Kind.FEWER_ENTRIES),
        (["b"], ["a", "b"], Kind.MORE_ENTRIES),
        (["a", "b"], ["b", "a"], Kind.REORDERED),
        ("gift_card_77", "credit_card_12", Kind.OTHER_SORT),
        ("gift_card_77", "gift_card_78", Kind.REPLACED),
        ("economy", "business", Kind.OTHER_WORD),
        ("economy", "basic_economy", Kind.OTHER_WORD),
        ("orders", "public.orders", Kind.PREFIX),
        ("return total", "def total(rows):\n    return total", Kind.LONGER),
        ("open orders of last May please", "open orders", Kind.SHORTER),
        ("find all open orders of May", "find all open orders of June", Kind.EDITED),
        ("HAT030", "HAT052", Kind.REPLACED),
        ({"a": 1}, None, Kind.REPLACED),
    ],
)
def test_a_difference_has_a_kind(before, after, kind):
    assert kind_of(before, after) is kind


@pytest.mark.parametrize(
    ("before", "after", "related"),
    [
        ({"order_id": "A-1"}, {"order_id": "A-2"}, True),
        ({"command": "cat notes.txt"}, {"command": "pytest -x tests"}, False),
        ({"command": "cat notes.txt", "timeout": 30}, {"command": "pytest -x tests", "timeout": 30}, False),
        ({"command": "pip install flask"}, {"command": "pip install --user flask"}, True),
        (
            {"path": "a.py", "text": "one line of code"},
            {"path": "a.py", "text": "something else again"},
            True,
        ),
        ({"query": "weather in Rome"}, {"query": "best pizza recipe"}, False),
        ({}, {}, True),
    ],
)
def test_a_later_call_is_another_try_unless_it_is_free_text_about_something_else(before, after, related):
    assert is_related(call(before), call(after)) is related
