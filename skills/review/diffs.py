"""Word-level differences between two contents, field by field, for people to read. Pure.

A text is compared line by line first and word by word inside what changed, so that the lines stay
recognisable and a long text stays cheap. Equal and deleted segments joined are the old text, equal and
inserted ones the new.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal

from skills.content import Content

Kind = Literal["equal", "insert", "delete"]

# A run of spaces, a line break, one letter of a script without spaces, a word, or a single other character.
TOKEN = re.compile(
    r"\n|[^\S\n]+|[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)+|[^\w\s]"
)
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)+")
BLANKS = re.compile(r"[^\S\n]+")
MAX_PRODUCT = 1_000_000
"""Parts longer than this, old times new, count as replaced whole: comparing them would take seconds."""


@dataclass(frozen=True)
class Segment:
    """A piece of text that stayed, came or went."""

    kind: Kind
    text: str


@dataclass(frozen=True, kw_only=True)
class FieldDiff:
    """What became of one field; `added` and `removed` count words."""

    field: str
    segments: tuple[Segment, ...]
    added: int
    removed: int

    @property
    def changed(self) -> bool:
        """Whether the texts differ at all."""
        return any(segment.kind != "equal" for segment in self.segments)

    @property
    def before(self) -> str:
        """The old text."""
        return "".join(segment.text for segment in self.segments if segment.kind != "insert")

    @property
    def after(self) -> str:
        """The new text."""
        return "".join(segment.text for segment in self.segments if segment.kind != "delete")


def field_diffs(before: Content | None, after: Content) -> list[FieldDiff]:
    """Return a diff for each field that has text on either side, in the order people read them."""
    old = readable_fields(before) if before else {}
    return [
        diff_texts(name, old.get(name, ""), text)
        for name, text in readable_fields(after).items()
        if text or old.get(name)
    ]


def changed_words(diffs: list[FieldDiff]) -> tuple[int, int]:
    """Return how many words all fields together gained and lost."""
    return sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)


def readable_fields(content: Content) -> dict[str, str]:
    """Return each field as text: a line per trigger, per tag, and per entry of an example."""
    return {
        "name": content.name,
        "entry_type": content.entry_type,
        "description": content.description,
        "instructions": content.instructions,
        "triggers": "\n".join(map(_readable, content.triggers)),
        "examples": "\n\n".join(map(_readable, content.examples)),
        "filter_tags": _readable(content.filter_tags),
    }


def _readable(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_readable_inline(item)}" for key, item in sorted(value.items()))
    return _readable_inline(value)


def _readable_inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def diff_texts(field: str, before: str, after: str) -> FieldDiff:
    """Compare two texts; segments alternate, a deletion before the insertion that replaces it."""
    segments = tuple(_joined(_readable_changes(list(_joined(_by_line(before, after))))))
    return FieldDiff(
        field=field,
        segments=segments,
        added=_words(segments, "insert"),
        removed=_words(segments, "delete"),
    )


def _words(segments: tuple[Segment, ...], kind: Kind) -> int:
    return sum(len(WORD.findall(segment.text)) for segment in segments if segment.kind == kind)


def _by_line(before: str, after: str) -> Iterator[Segment]:
    for old, new, equal in _blocks(before.splitlines(keepends=True), after.splitlines(keepends=True)):
        if equal:
            yield Segment("equal", "".join(old))
        else:
            yield from _by_word(old, new)


def _by_word(before: list[str], after: list[str]) -> Iterator[Segment]:
    """Compare the words of lines that changed: all together, or pair by pair where that is too much."""
    old_words, new_words = TOKEN.findall("".join(before)), TOKEN.findall("".join(after))
    if len(old_words) * len(new_words) > MAX_PRODUCT and len(before) + len(after) > 2:
        for old_line, new_line in zip_longest(before, after, fillvalue=""):
            yield from _by_word([old_line], [new_line])
        return
    for old, new, equal in _blocks(old_words, new_words):
        if equal:
            yield Segment("equal", "".join(old))
        else:
            yield Segment("delete", "".join(old))
            yield Segment("insert", "".join(new))


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[list[str], list[str], bool]]:
    """Yield (old part, new part, whether they are equal) for consecutive parts of two lists."""
    head = _common_prefix(old, new)
    tail = _common_prefix(old[head:][::-1], new[head:][::-1])
    yield old[:head], new[:head], True
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not (middle_old and middle_new) or len(middle_old) * len(middle_new) > MAX_PRODUCT:
        yield middle_old, middle_new, False
    else:
        # Without autojunk: on repetitive text it measures a small insertion as a rewrite.
        matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield middle_old[i1:i2], middle_new[j1:j2], tag == "equal"
    yield old[len(old) - tail :], new[len(new) - tail :], True


def _common_prefix(old: list[str], new: list[str]) -> int:
    shared = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        shared += 1
    return shared


def _readable_changes(segments: list[Segment]) -> Iterator[Segment]:
    """Count blanks between two changes as changed: `old words` → `new text` reads better than four bits."""
    last = len(segments) - 1
    for position, segment in enumerate(segments):
        if segment.kind == "equal" and 0 < position < last and BLANKS.fullmatch(segment.text):
            yield Segment("delete", segment.text)
            yield Segment("insert", segment.text)
        else:
            yield segment


def _joined(segments: Iterator[Segment]) -> Iterator[Segment]:
    """Merge neighbours, each run of changes into one deletion followed by one insertion."""
    deleted = inserted = kept = ""
    for segment in segments:
        match segment.kind:
            case "equal" if segment.text:
                yield from _change(deleted, inserted)
                deleted = inserted = ""
                kept += segment.text
            case "delete" if segment.text:
                if kept:
                    yield Segment("equal", kept)
                    kept = ""
                deleted += segment.text
            case "insert" if segment.text:
                if kept:
                    yield Segment("equal", kept)
                    kept = ""
                inserted += segment.text
    yield from _change(deleted, inserted)
    if kept:
        yield Segment("equal", kept)


def _change(deleted: str, inserted: str) -> Iterator[Segment]:
    if deleted:
        yield Segment("delete", deleted)
    if inserted:
        yield Segment("insert", inserted)
