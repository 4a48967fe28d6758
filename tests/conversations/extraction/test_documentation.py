"""docs/shapes.md tells the truth: its examples are known, and every family has a row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conversations.extraction.families import FAMILIES, family_of

PAGE = Path(__file__).parents[3] / "docs" / "shapes.md"
EXAMPLES = re.findall(r"`(\{.*?\})`(?=[,; |])", PAGE.read_text())
SHORTENED = {"[…]": "[]", "{…}": "{}", ", …}": "}", ": …}": ": 1}"}
PARTS_ONLY = {"anthropic", "bedrock"}  # their messages are those of OpenAI's shape


def example(text: str) -> dict:
    """An example as JSON, its dots filled in."""
    for dots, filled in SHORTENED.items():
        text = text.replace(dots, filled)
    return json.loads(text)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_of_a_known_shape(text):
    assert family_of(example(text)) is not None


def test_there_are_examples_for_every_family_that_has_elements():
    shown = {family.name for text in EXAMPLES if (family := family_of(example(text)))}
    assert shown == {family.name for family in FAMILIES} - PARTS_ONLY
