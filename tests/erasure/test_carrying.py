"""Changes carried over to a text that lacks some of what they were made to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skills.content import Content
from skills.erasure.carrying import carried

BASE = Content(
    name="pay",
    description="Pay.",
    instructions="1. Ask.\n2. Greet zanzibar.\n3. Charge.",
    triggers=["pay", "zanzibar"],
    examples=[{"said": "zanzibar"}],
    filter_tags={"team": "red"},
)
LEFT = replace(BASE, instructions="1. Ask.\n3. Charge.", triggers=["pay"], examples=[])


def carry(**changes: Any) -> Content:
    return carried(
        base=BASE,
        left=LEFT,
        mine=replace(BASE, **changes),
        may_stay=lambda value: "zanzibar" not in str(value),
    )


@pytest.mark.parametrize(
    ("mine", "outcome"),
    [
        ("1. Ask.\n2. Greet zanzibar.\n3. Charge.\n4. Thank.", "1. Ask.\n3. Charge.\n4. Thank."),
        ("1. Ask.\n2. Greet zanzibar.\nLook.\n3. Charge.", "1. Ask.\nLook.\n3. Charge."),
        ("1. Ask twice.\n2. Greet zanzibar.\n3. Charge.", "1. Ask twice.\n3. Charge."),
        ("1. Ask.\n2. Greet zanzibar twice.\n3. Charge.", "1. Ask.\n3. Charge."),
        ("1. Ask.\n2. Greet.\n3. Charge.", "1. Ask.\n2. Greet.\n3. Charge."),
        ("2. Greet zanzibar.\n3. Charge.", "3. Charge."),
        ("1. Ask.\n3. Charge.", "1. Ask.\n3. Charge."),
        ("", ""),
        (BASE.instructions, LEFT.instructions),
    ],
    ids=["added", "added behind", "changed", "of what goes", "instead of it", "removed", "it", "all", "none"],
)
def test_lines(mine, outcome):
    assert carry(instructions=mine).instructions == outcome


def test_triggers_and_examples():
    found = carry(triggers=["zanzibar", "buy", "to zanzibar"], examples=[{"said": "zanzibar"}, {"said": "x"}])
    assert (found.triggers, found.examples) == (["buy"], [{"said": "x"}])


def test_names_and_tags():
    found = carry(name="buy", description="To zanzibar.", entry_type="guide", filter_tags={})
    assert (found.name, found.description, found.entry_type) == ("buy", "Pay.", "guide")
    assert found.filter_tags == {}


def test_nothing_is_carried_of_no_change():
    assert carry() == LEFT


def test_of_texts_that_take_too_long_to_compare_nothing_is():
    base = replace(BASE, instructions="a\n" * 20_000)
    mine = replace(base, instructions="a\n" * 19_999 + "b\n")
    found = carried(base=base, left=LEFT, mine=mine, may_stay=lambda value: True)
    assert found.instructions == LEFT.instructions
