"""A later change carried over to a text that lacks some of what it was made to. Pure.

Unlike a rebase this never fails: of what goes nothing is asked for, so that a step that was added behind one
that goes is put where that one stood. A person reads the outcome before anybody uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from skills.content import Content
from skills.evolution.anchors import MAX_EQUAL_PAIRS, MAX_PAIRS
from skills.review.tags import shared_tags

MayStay = Callable[[Any], bool]


def carried(*, base: Content, left: Content, mine: Content, may_stay: MayStay) -> Content:
    """Return `left`, which is what stays of `base`, with the parts of the change to `mine` that may stay."""
    fields: dict[str, Any] = {
        "instructions": _lines(base.instructions, left.instructions, mine.instructions, may_stay)
    }
    for name in ("triggers", "examples"):
        fields[name] = _items(getattr(base, name), getattr(left, name), getattr(mine, name), may_stay)
    for name in ("name", "description", "entry_type"):
        before, now, then = (getattr(content, name) for content in (base, left, mine))
        is_free = now == before != then and (name == "entry_type" or may_stay(then))
        fields[name] = then if is_free else now
    if mine.filter_tags != base.filter_tags:
        fields["filter_tags"] = shared_tags([left.filter_tags, mine.filter_tags])
    return replace(left, **fields)


def _lines(base: str, left: str, mine: str, may_stay: MayStay) -> str:
    old = base.splitlines()
    if any(_is_too_much(old, text.splitlines()) for text in (left, mine)):
        return left
    here, there = _Change(old, left.splitlines()), _Change(old, mine.splitlines())
    lines: list[str] = []
    for place in range(len(old) + 1):
        lines += here.put_in[place]
        lines += filter(may_stay, there.put_in[place])
        if place < len(old) and here.keeps[place] and there.keeps[place]:
            lines.append(old[place])
    return left if lines == left.splitlines() else "\n".join(lines)


def _is_too_much(old: Sequence[str], new: Sequence[str]) -> bool:
    counts = Counter(new)
    return len(old) * len(new) > MAX_PAIRS or sum(counts[line] for line in old) > MAX_EQUAL_PAIRS


class _Change:
    """What a text does to the lines of another: which it keeps, and what it puts in before each place."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.keeps = [False] * len(old)
        self.put_in: list[list[str]] = [[] for _ in range(len(old) + 1)]
        for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                self.keeps[start:end] = [True] * (end - start)
            else:
                self.put_in[start] += new[first:last]


def _items(base: list[Any], left: list[Any], mine: list[Any], may_stay: MayStay) -> list[Any]:
    kept = [item for item in left if item in mine or item not in base]
    return kept + [item for item in mine if item not in base and item not in kept and may_stay(item)]
