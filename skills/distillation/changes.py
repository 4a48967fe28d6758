"""What differs between two calls of one tool, and what kind of difference it is. Pure.

Objects are compared key by key and lists entry by entry where they are of one length, so that a change
deep inside is named by its path (`flights[2].flight_number`); lists of different lengths change as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from skills.distillation.calls import Call, canonical


class Absent:
    """The value of an argument that was not given."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = Absent()


class Kind(StrEnum):
    """What kind of difference a change is; the transferable part of it."""

    ADDED = "added"
    REMOVED = "removed"
    AS_NUMBER = "as_number"
    AS_TEXT = "as_text"
    AS_BOOLEAN = "as_boolean"
    AS_LIST = "as_list"
    AS_SINGLE = "as_single"
    CASE = "case"
    TRIMMED = "trimmed"
    WHITE_SPACE = "white_space"
    DATE_FORMAT = "date_format"
    PREFIX = "prefix"
    WITHOUT_PREFIX = "without_prefix"
    SUFFIX = "suffix"
    WITHOUT_SUFFIX = "without_suffix"
    LOWER = "lower"
    HIGHER = "higher"
    FEWER_ENTRIES = "fewer_entries"
    MORE_ENTRIES = "more_entries"
    REORDERED = "reordered"
    LONGER = "longer"
    SHORTER = "shorter"
    EDITED = "edited"
    OTHER_SORT = "other_sort"
    OTHER_WORD = "other_word"
    REPLACED = "replaced"


FORM = {
    Kind.ADDED,
    Kind.REMOVED,
    Kind.AS_NUMBER,
    Kind.AS_TEXT,
    Kind.AS_BOOLEAN,
    Kind.AS_LIST,
    Kind.AS_SINGLE,
    Kind.CASE,
    Kind.TRIMMED,
    Kind.WHITE_SPACE,
    Kind.DATE_FORMAT,
    Kind.PREFIX,
    Kind.WITHOUT_PREFIX,
    Kind.SUFFIX,
    Kind.WITHOUT_SUFFIX,
}
"""Differences of form: they hold for the next call too, whatever its values are."""

_WORD = re.compile(r"[A-Za-z]+(?:[ _-][A-Za-z]+){0,2}")
_SORT = re.compile(r"([A-Za-z]+(?:[_-][A-Za-z]+)*[_:-])[A-Za-z]?\d[\w-]*")

DATE_FORMATS = {
    "YYYY-MM-DD": re.compile(r"\d{4}-\d{2}-\d{2}"),
    "YYYY-MM-DDThh:mm:ssZ": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z"),
    "YYYY-MM-DDThh:mm:ss": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?"),
    "YYYY-MM-DDThh:mm:ss with an offset": re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+[+-]\d{2}:?\d{2}"),
    "YYYY/MM/DD": re.compile(r"\d{4}/\d{2}/\d{2}"),
    "YYYYMMDD": re.compile(r"(?:19|20)\d{6}"),
    "DD.MM.YYYY": re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"),
    "NN/NN/YYYY": re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}"),
    "NN-NN-YYYY": re.compile(r"\d{1,2}-\d{1,2}-\d{4}"),
    "month in words": re.compile(
        r"(?:\d{1,2}\.? )?[A-Z][a-z]{2,8}\.?(?: \d{1,2}(?:st|nd|rd|th)?)?,?(?: \d{4})?"
    ),
    "relative": re.compile(r"today|tomorrow|yesterday|now|(?:next|last|this) \w+", re.IGNORECASE),
}


@dataclass(frozen=True)
class Change:
    """One argument that differs: where, and both values (`ABSENT` where it was not given)."""

    argument: str
    before: Any
    after: Any

    @property
    def kind(self) -> Kind:
        """The most telling description of the difference."""
        return kind_of(self.before, self.after)

    @property
    def name(self) -> str:
        """The top-level argument."""
        return re.split(r"[.\[]", self.argument, maxsplit=1)[0]

    def as_data(self) -> dict[str, Any]:
        """Return the change for `details`: absent values have no key."""
        values = {"before": self.before, "after": self.after}
        return {"argument": self.argument} | {
            key: value for key, value in values.items() if value is not ABSENT
        }


def compare(before: Call, after: Call) -> list[Change]:
    """Return what differs between the arguments of two calls, in the order of the earlier one's."""
    return list(_compare(before.arguments, after.arguments, ""))


def _compare(before: Any, after: Any, path: str) -> Iterator[Change]:
    if canonical(before) == canonical(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = f"{path}.{key}" if path else key
            if key not in before:
                yield Change(inner, ABSENT, after[key])
            elif key not in after:
                yield Change(inner, before[key], ABSENT)
            else:
                yield from _compare(before[key], after[key], inner)
    elif _entrywise(before, after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _compare(old, new, f"{path}[{index}]")
    else:
        yield Change(path or "arguments", before, after)


def _entrywise(before: Any, after: Any) -> bool:
    """Whether two lists are best told apart entry by entry: same length, not one list in another order."""
    if not (isinstance(before, list) and isinstance(after, list) and len(before) == len(after)):
        return False
    return sorted(map(canonical, before)) != sorted(map(canonical, after))


def kind_of(before: Any, after: Any) -> Kind:
    """Return what kind of difference lies between two values."""
    if before is ABSENT:
        return Kind.ADDED
    if after is ABSENT:
        return Kind.REMOVED
    if isinstance(before, str) and isinstance(after, str):
        return _kind_of_texts(before, after)
    if isinstance(before, list) or isinstance(after, list):
        return _kind_of_lists(before, after)
    if isinstance(after, bool) and str(before).lower() in {"true", "false", "yes", "no", "1", "0"}:
        return Kind.AS_BOOLEAN
    if _is_number(after) and isinstance(before, str) and _is_numeric(before):
        return Kind.AS_NUMBER
    if isinstance(after, str) and _is_number(before) and _is_numeric(after):
        return Kind.AS_TEXT
    if _is_number(before) and _is_number(after):
        return Kind.LOWER if after < before else Kind.HIGHER
    return Kind.REPLACED


def _kind_of_texts(before: str, after: str) -> Kind:
    if before.split() == after.split():
        trimmed = before.strip() == after and "\n" not in before
        return Kind.TRIMMED if trimmed else Kind.WHITE_SPACE
    if before.strip().casefold() == after.strip().casefold():
        return Kind.CASE
    if date_format(after) and date_format(before) != date_format(after) and _is_dateish(before):
        return Kind.DATE_FORMAT
    if _WORD.fullmatch(before) and _WORD.fullmatch(after):
        return Kind.OTHER_WORD
    if affix := _affix(before, after):
        return affix
    if sort_of(before) and sort_of(after):
        return Kind.OTHER_SORT if sort_of(before) != sort_of(after) else Kind.REPLACED
    return _kind_of_prose(before, after)


def _kind_of_prose(before: str, after: str) -> Kind:
    short, long = sorted((before.strip(), after.strip()), key=len)
    if len(short) >= 8 and short in long and _is_prose(long):
        return Kind.LONGER if long == after.strip() else Kind.SHORTER
    return Kind.EDITED if _is_prose(before) and similarity(before, after) >= 0.5 else Kind.REPLACED


def _affix(before: str, after: str) -> Kind | None:
    """Return how one text extends the other, where the shared part is an identifier or a path."""
    short, long = sorted((before, after), key=len)
    if len(short) < 3 or _is_prose(long) or len(long) > 120:
        return None
    grown = after is long
    affix = long.removesuffix(short) if long.endswith(short) else long.removeprefix(short)
    if any(char.isdigit() for char in affix):
        return None  # part of this one value, not of the form of all
    if long.endswith(short):
        return Kind.PREFIX if grown else Kind.WITHOUT_PREFIX
    if long.startswith(short):
        return Kind.SUFFIX if grown else Kind.WITHOUT_SUFFIX
    return None


def _kind_of_lists(before: Any, after: Any) -> Kind:
    if not isinstance(before, list):
        return Kind.AS_LIST if [canonical(before)] == [canonical(item) for item in after] else Kind.REPLACED
    if not isinstance(after, list):
        return Kind.AS_SINGLE if [canonical(after)] == [canonical(item) for item in before] else Kind.REPLACED
    old, new = [canonical(item) for item in before], [canonical(item) for item in after]
    if sorted(old) == sorted(new):
        return Kind.REORDERED
    if set(new) < set(old):
        return Kind.FEWER_ENTRIES
    if set(old) < set(new):
        return Kind.MORE_ENTRIES
    return Kind.REPLACED


def renamed(changes: Sequence[Change]) -> tuple[Change, Change] | None:
    """Return the argument that went and the one that came with its value, where there is one such pair."""
    gone = [change for change in changes if change.after is ABSENT]
    came = [change for change in changes if change.before is ABSENT]
    pairs = [(old, new) for old in gone for new in came if canonical(old.before) == canonical(new.after)]
    return pairs[0] if len(pairs) == 1 else None


def edited_part(before: str, after: str) -> tuple[str, str] | None:
    """Return the words in which two long texts differ, a word of context on both sides.

    None for texts that differ in more than one place or that are short enough to be read as a whole.
    """
    old, new = before.split(), after.split()
    if min(len(before), len(after)) <= 60 or max(len(old), len(new)) > 400:
        return None
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    edits = [block for block in blocks if block[0] != "equal"]
    if len(edits) != 1:
        return None
    _, old_start, old_end, new_start, new_end = edits[0]
    return (
        " ".join(old[max(0, old_start - 1) : old_end + 1]),
        " ".join(new[max(0, new_start - 1) : new_end + 1]),
    )


def entries_only_in(values: Any, others: Any) -> list[Any]:
    """Return the entries of one list that the other lacks."""
    if not (isinstance(values, list) and isinstance(others, list)):
        return []
    known = {canonical(item) for item in others}
    return [item for item in values if canonical(item) not in known]


def date_format(text: str) -> str:
    """Return the name of the date format that a text is written in, "" for none."""
    return next((name for name, pattern in DATE_FORMATS.items() if pattern.fullmatch(text.strip())), "")


def sort_of(text: str) -> str:
    """Return what an identifier says about its kind, ``gift_card_`` of ``gift_card_748``; "" for nothing."""
    found = _SORT.fullmatch(text)
    return found.group(1) if found else ""


def _is_dateish(text: str) -> bool:
    return bool(date_format(text)) or bool(re.search(r"\d", text) and re.search(r"[/.:,\s-]", text))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_numeric(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?\d{1,30}(?:[.,]\d{1,30})?\s*", text) is not None


def _is_prose(text: str) -> bool:
    return len(text.split()) > 3


def words(text: str) -> set[str]:
    """Return the words of a text that tell it from others."""
    return set(re.findall(r"[^\W_]{3,}", text.casefold()))


def similarity(one: str, other: str) -> float:
    """Return how alike two texts are by their words: 0 nothing in common, 1 the same words in order."""
    first, second = one.split()[:400], other.split()[:400]
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every scalar inside a value with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def is_related(before: Call, after: Call) -> bool:
    """Whether a call can be another try at what an earlier one asked for.

    Structured arguments are taken at their word. Free text (a command, a query, code) must resemble the
    earlier text: the next command in a shell is not a correction of the last one just because it worked.
    """
    old = dict(leaves(before.arguments))
    new = dict(leaves(after.arguments))
    if any(_names_something(value) and new.get(path) == value for path, value in old.items()):
        return True
    old_text, new_text = _free_text(old), _free_text(new)
    if not old_text and not new_text:
        return True
    shared, either = words(old_text) & words(new_text), words(old_text) | words(new_text)
    if not either:
        return SequenceMatcher(None, old_text[:200], new_text[:200], autojunk=False).ratio() >= 0.5
    return len(shared) / len(either) >= 0.3


def _names_something(value: Any) -> bool:
    """Whether a value can tell what a call is about; a timeout or a flag cannot."""
    return isinstance(value, str) and len(value) >= 3


def _free_text(values: dict[str, Any]) -> str:
    """Return the texts of a call that are written freely; "" where all of them are plain values."""
    texts = [value for value in values.values() if isinstance(value, str)]
    texts = [text[:2_000] for text in texts]
    return " ".join(texts) if any(len(text.split()) > 1 for text in texts) else ""
