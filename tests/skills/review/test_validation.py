from __future__ import annotations

from dataclasses import replace

import pytest

from skills.content import Content
from skills.review.validation import content_errors

GOOD = Content(name="pay-an-order", description="Use when an order is paid.", instructions="1. Charge it.")


def test_good_content_has_no_errors():
    full = replace(
        GOOD,
        name="a" * 64,
        description="d" * 1_024,
        instructions="i" * 65_536,
        triggers=["t" * 512] * 50,
        examples=[{"input": "a", "output": None}] * 50,
        entry_type="script",
        filter_tags={"team": "billing"},
    )

    assert content_errors(GOOD) == {}
    assert content_errors(full) == {}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({"name": ""}, {"name": ["A skill needs a name."]}),
        ({"name": "a" * 65}, {"name": ["At most 64 characters; this one has 65."]}),
        ({"description": " \n"}, {"description": ["Must not be blank."]}),
        ({"description": "\u200b\u2800"}, {"description": ["Must not be blank."]}),
        ({"description": "d" * 1_025}, {"description": ["At most 1,024 characters; this has 1,025."]}),
        ({"instructions": ""}, {"instructions": ["Must not be blank."]}),
        ({"instructions": "i" * 65_537}, {"instructions": ["At most 65,536 characters; this has 65,537."]}),
        ({"entry_type": "process"}, {"entry_type": ["One of workflow, guide, script."]}),
        ({"entry_type": ["guide"]}, {"entry_type": ["One of workflow, guide, script."]}),
        ({"triggers": "pay"}, {"triggers": ["Must be a list of texts."]}),
        ({"triggers": ["pay"] * 51}, {"triggers": ["At most 50 triggers; there are 51."]}),
        ({"triggers": ["pay", "t" * 513]}, {"triggers": ["Trigger 2 has 513 characters; at most 512."]}),
        ({"triggers": [7]}, {"triggers": ["Trigger 1 must be a text that is not blank."]}),
        ({"examples": {}}, {"examples": ["Must be a list of objects."]}),
        ({"examples": [{}] * 51}, {"examples": ["At most 50 examples; there are 51."]}),
        ({"examples": [{}, "x"]}, {"examples": ["Example 2 must be an object."]}),
        (
            {"examples": [{"a": "é" * 65_526}]},
            {"examples": ["At most 65,536 characters as JSON; this has 65,537."]},
        ),
        ({"filter_tags": []}, {"filter_tags": ["Must be an object."]}),
        (
            {"filter_tags": {"a": "é" * 65_528}},
            {"filter_tags": ["At most 65,536 characters as JSON; this has 65,537."]},
        ),
    ],
)
def test_each_broken_rule_names_its_field(change, errors):
    assert content_errors(replace(GOOD, **change)) == errors


@pytest.mark.parametrize(
    "name", ["Pay", "pay_order", "-pay", "pay-", "pay--order", "pay order", "zahlén", "pay\n"]
)
def test_a_name_is_a_slug(name):
    assert content_errors(replace(GOOD, name=name)) == {
        "name": ["Lower-case ASCII letters, digits and single hyphens between them only."]
    }


def test_all_fields_are_reported_at_once():
    assert set(content_errors(replace(GOOD, name="", description="", triggers=None))) == {
        "name",
        "description",
        "triggers",
    }
