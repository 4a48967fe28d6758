"""Merging: what a second text says beyond the first, line by line."""

from __future__ import annotations

from skills.content import Content
from skills.evolution.merging import merge


def content(instructions: str, **fields) -> Content:
    return Content(**({"name": "pay", "description": "Pays.", "instructions": instructions} | fields))


def test_lines_go_where_they_belong():
    base = content(
        "1. Ask for the card.\n\n## When it answers with an error\n- “no funds”: use another `card`.",
        triggers=["pay"],
    )
    addition = content(
        "1. Ask for the card.\n2. Wait for a yes.\n\n## Errors\n- “no funds”: set `plan` to `rates`.\n"
        "- “expired”: use another `card`.\n\n## Pitfalls\n- Paying twice.",
        name="settle-an-order",
        description="Settles.",
        triggers=["settle", "pay"],
        examples=[{"input": "a"}],
    )
    assert merge(base, addition) == content(
        "1. Ask for the card.\n2. Wait for a yes.\n\n"
        "## When it answers with an error\n"
        "- “no funds”: use another `card`; else set `plan` to `rates`.\n- “expired”: use another `card`.\n\n"
        "## Avoid\n- Paying twice.",
        triggers=["pay", "settle"],
        examples=[{"input": "a"}],
    )


def test_what_adds_nothing_leaves_the_text_byte_for_byte():
    base = content("1. Ask for the card.  \n\n\n## Notes\nMind the time.\n", triggers=["pay"])
    assert merge(base, content("- ask for the card", triggers=["pay"])) == base
    assert merge(base, base) == base
