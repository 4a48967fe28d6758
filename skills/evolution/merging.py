"""Merging one skill's text into another's: what to do with a new skill that is near an existing one. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from skills.content import MAX_TRIGGERS, Content, fitting
from skills.evolution.page import AVOID, ERRORS, Page, section_of


def merge(base: Content, addition: Content) -> Content:
    """Return `base` with what `addition` says and it does not: lines, triggers, examples.

    Name, description, type and tags stay those of `base`. Equal to `base` where nothing is new.
    """
    page = Page(base.instructions)
    section = ""
    for line in addition.instructions.splitlines():
        heading = section_of(line)
        section = section if heading is None else heading
        if heading is None and line.strip():
            _add(page, section, line.strip())
    triggers = list(dict.fromkeys([*base.triggers, *addition.triggers]))[:MAX_TRIGGERS]
    examples = fitting([*base.examples, *(item for item in addition.examples if item not in base.examples)])
    return replace(
        base,
        instructions=page.text if page.changed else base.instructions,
        triggers=triggers if len(triggers) > len(base.triggers) else base.triggers,
        examples=examples if len(examples) > len(base.examples) else base.examples,
    )


def _add(page: Page, section: str, line: str) -> None:
    """Add one line of another page: an error's remedies one by one, all else as it is."""
    text = re.sub(r"^(?:[-*+]|\d+[.)]) +", "", line)
    if section == ERRORS and (found := re.match(r"“([^”]+)”: (.+)$", text)):
        page.add_remedies(found[1], found[2])
    elif section == AVOID:
        page.add_pitfall(text)
    else:
        page.add_step(text)
