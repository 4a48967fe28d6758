"""What a change of arguments teaches, in words: what to do, what not to do, and how it looked. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from skills.distillation.changes import (
    ABSENT,
    FORM,
    Change,
    Kind,
    date_format,
    edited_part,
    entries_only_in,
    renamed,
    sort_of,
)
from skills.distillation.wording import code, exact, listing, number, spelled, value

MAX_NAMED = 3

_DO = {
    Kind.ADDED: "add {name}",
    Kind.REMOVED: "leave out {name}",
    Kind.AS_NUMBER: "pass {name} as a number",
    Kind.AS_TEXT: "pass {name} as text",
    Kind.AS_BOOLEAN: "pass {name} as a boolean",
    Kind.AS_LIST: "pass {name} as a list",
    Kind.AS_SINGLE: "pass {name} as a single value",
    Kind.CASE: "write {name} as {after}",
    Kind.TRIMMED: "trim the white space around {name}",
    Kind.WHITE_SPACE: "mind the white space in {name}",
    Kind.DATE_FORMAT: "write {name} {format}",
    Kind.PREFIX: "give {name} with {affix} in front",
    Kind.WITHOUT_PREFIX: "give {name} without {affix} in front",
    Kind.SUFFIX: "give {name} with {affix} at the end",
    Kind.WITHOUT_SUFFIX: "give {name} without {affix} at the end",
    Kind.LOWER: "lower {name} to {after}",
    Kind.HIGHER: "raise {name} to {after}",
    Kind.FEWER_ENTRIES: "take {entries} out of {name}",
    Kind.MORE_ENTRIES: "add {entries} to {name}",
    Kind.REORDERED: "put {name} in another order",
    Kind.LONGER: "give a longer {name}",
    Kind.SHORTER: "give a shorter {name}",
    Kind.EDITED: "revise {name}",
    Kind.OTHER_SORT: "use a {sort} as {name}",
    Kind.OTHER_WORD: "set {name} to {after}",
}
_AVOID = {
    Kind.ADDED: "call {tool} without {name}",
    Kind.REMOVED: "pass {name} to {tool}",
    Kind.AS_NUMBER: "pass {name} to {tool} as text",
    Kind.AS_TEXT: "pass {name} to {tool} as a number",
    Kind.AS_LIST: "pass {name} to {tool} as a single value",
    Kind.AS_SINGLE: "pass {name} to {tool} as a list",
    Kind.CASE: "write {name} as {before} for {tool}",
    Kind.DATE_FORMAT: "write {name} like {before} for {tool}",
    Kind.PREFIX: "give {tool} {name} without {affix} in front",
    Kind.WITHOUT_PREFIX: "give {tool} {name} with {affix} in front",
    Kind.SUFFIX: "give {tool} {name} without {affix} at the end",
    Kind.WITHOUT_SUFFIX: "give {tool} {name} with {affix} at the end",
}
_TYPED = {Kind.AS_NUMBER, Kind.AS_TEXT, Kind.AS_BOOLEAN, Kind.AS_LIST, Kind.AS_SINGLE, Kind.TRIMMED}
_REFERENCE = re.compile(
    r"(?:^|_)(?:id|ids|number|no|code|key|ref|reference|method|name|type|slug)$", re.IGNORECASE
)


def do(change: Change, *, example: bool = True) -> str:
    """Return what to do, short enough for a title: ``pass `limit` as a number``.

    `example` adds the value that worked where only that says what a change was.
    """
    return _filled(_template(change, example=example), change)


def do_all(changes: Sequence[Change], *, example: bool = True) -> str:
    """Return what to do about all changes, at most three of them in full."""
    if len(changes) == 2 and (pair := renamed(changes)):
        return f"pass {code(leaf(pair[1]), 60)} instead of {code(leaf(pair[0]), 60)}"
    templates = {_template(change, example=example) for change in changes}
    if len(changes) > 1 and len(templates) == 1 and re.findall(r"{\w+}", min(templates)) == ["{name}"]:
        return min(templates).format(name=_names(changes))
    if len(changes) <= MAX_NAMED:
        return listing(dict.fromkeys(do(change, example=example) for change in changes))
    return f"change {_names(changes)}"


def _template(change: Change, *, example: bool) -> str:
    if change.kind in _DO:
        return _DO[change.kind]
    if _REFERENCE.search(leaf(change)):
        return "use another {name}"
    short = isinstance(change.after, str | int | float) and 0 < len(str(change.after).strip()) <= 32
    short = short and not str(change.after).startswith("[secret-")
    return "change {name} (here to {after})" if short and example else "change {name}"


def _names(changes: Sequence[Change]) -> str:
    """Return the names of the arguments; where they are many, only their number."""
    names = list(dict.fromkeys(leaf(change) for change in changes))
    if len(names) > MAX_NAMED:
        names = list(dict.fromkeys(change.name for change in changes))
    if len(names) > MAX_NAMED:
        return number(len(names), "argument")
    return listing(code(name, 60) for name in names)


def avoid(change: Change, tool: str) -> str:
    """Return what not to do, ``call `list_orders` without `limit```; "" where only the value was wrong."""
    template = _AVOID.get(change.kind, "")
    return _filled(template, change, tool=code(tool, 60)) if template else ""


def avoid_all(changes: Sequence[Change], tool: str) -> str:
    """Return what not to do where form is what was wrong; "" where it was, or may have been, the values."""
    if not is_formal(changes):
        return ""
    if len(changes) == 1:
        return avoid(changes[0], tool)
    if len(changes) == 2 and (pair := renamed(changes)):
        return avoid(pair[0], tool)
    missing = [code(leaf(change), 40) for change in changes if change.kind is Kind.ADDED]
    surplus = [code(leaf(change), 40) for change in changes if change.kind is Kind.REMOVED]
    parts = [f"with {listing(surplus)}"] if surplus else []
    parts += [f"without {listing(missing)}"] if missing else []
    return f"call {code(tool, 60)} {listing(parts, 'or')}" if parts else ""


def contrast(change: Change, *, brief: bool = False) -> str:
    """Return both values in one clause: ```payment_id` was `b` instead of `a```.

    Of lists that grew or shrank, `brief` gives the number of entries only.
    """
    name = code(change.argument, 80)
    match change.kind:
        case Kind.ADDED:
            return f"{name} was given as {value(change.after)}"
        case Kind.REMOVED:
            return f"{name} ({value(change.before)}) was left out"
        case Kind.WHITE_SPACE:
            return f"{name} was the same text with other white space: {_indented(change)}"
        case Kind.EDITED if part := edited_part(change.before, change.after):
            return f"{name} had {value(part[1])} where it had had {value(part[0])}"
        case Kind.FEWER_ENTRIES | Kind.MORE_ENTRIES if brief:
            return f"{name} {_resized(change)}"
        case Kind.FEWER_ENTRIES:
            return f"{name} {_resized(change)}: {_kept(change.after)}{_moved(change, 'left out')}"
        case Kind.MORE_ENTRIES:
            return f"{name} {_resized(change)}: {_kept(change.before)}{_moved(change, 'added')}"
    return f"{name} was {_shown(change, change.after)} instead of {_shown(change, change.before)}"


def contrast_all(changes: Sequence[Change], *, brief: bool = False) -> str:
    """Return all changes with both values of each."""
    return listing(contrast(change, brief=brief) for change in changes)


def sent(changes: Sequence[Change]) -> str:
    """Return how the failed call looked where it differs: ``with `limit="25"` and without `reason```."""
    given = [assignment(change.argument, change.before) for change in changes if change.before is not ABSENT]
    missing = [code(change.argument, 80) for change in changes if change.before is ABSENT]
    parts = [f"with {listing(given)}"] if given else []
    parts += [f"without {listing(missing, 'or')}"] if missing else []
    return listing(parts)


def assignment(name: str, item: Any) -> str:
    """Return an argument as it was given: ```limit="25"```."""
    return f"`{code(name, 80)[1:-1]}={exact(item, 160)[1:-1]}`"


def is_formal(changes: Sequence[Change]) -> bool:
    """Whether every change is one of form, so that it holds for other values too."""
    return bool(changes) and all(change.kind in FORM for change in changes)


def leaf(change: Change) -> str:
    """Return the argument's own name, without the path that leads to it."""
    return re.sub(r"(?:\[\d+\])+$", "", change.argument).rsplit(".", 1)[-1] or change.argument


def _filled(template: str, change: Change, **more: str) -> str:
    """Fill a template; only what it mentions is worked out, since not every kind has it."""
    parts = more | {"name": code(leaf(change), 60)}
    makers = {
        "before": lambda: value(change.before, 40),
        "after": lambda: value(change.after, 40),
        "format": lambda: _format(change.after),
        "sort": lambda: code(f"{sort_of(change.after)}…", 40),
        "affix": lambda: _affix(change),
        "entries": lambda: _entries(change),
    }
    for key, make in makers.items():
        if f"{{{key}}}" in template:
            parts[key] = make()
    return template.format(**parts)


def _shown(change: Change, item: Any) -> str:
    return exact(item) if change.kind in _TYPED else value(item)


def _format(item: Any) -> str:
    """Return how a date is to be written: by the format's name, or by example."""
    name = date_format(str(item))
    return f"as {name}" if name.startswith("YYYY") else f"like {value(item, 30)}"


def _affix(change: Change) -> str:
    """Return the part that one of two texts has and the other lacks."""
    short, long = sorted((change.before, change.after), key=len)
    return value(long.removesuffix(short) if long.endswith(short) else long.removeprefix(short), 40)


def _extra(change: Change) -> list[Any]:
    """Return the entries that one of two lists has and the other lacks."""
    fewer, more = sorted((change.before, change.after), key=len)
    return entries_only_in(more, fewer)


def _indented(change: Change) -> str:
    """Return the first line that begins or reads differently, and how."""
    old, new = change.before.split("\n"), change.after.split("\n")
    for before, after in zip(old, new, strict=False):
        was, now = _indent(before), _indent(after)
        if was != now:
            return f"{value(after.strip(), 60)} began with {now} instead of {was}"
        if before != after:
            return f"{value(after.strip(), 60)} was spaced differently"
    return f"it had {number(len(new), 'line')} instead of {spelled(len(old))}"


def _indent(line: str) -> str:
    blank = line[: len(line) - len(line.lstrip())]
    if not blank:
        return "no white space"
    if set(blank) == {"\t"}:
        return number(len(blank), "tab")
    return number(len(blank), "blank") if set(blank) == {" "} else "other white space"


def _entries(change: Change) -> str:
    extra = _extra(change)
    if len(extra) == 1 and not isinstance(extra[0], dict | list):
        return value(extra[0], 40)
    return number(len(extra), "entry", "entries")


def _resized(change: Change) -> str:
    return f"had {number(len(change.after), 'entry', 'entries')} instead of {spelled(len(change.before))}"


def _kept(entries: list[Any]) -> str:
    return f"{_some(entries)} stayed, while " if entries else ""


def _moved(change: Change, how: str) -> str:
    extra = _extra(change)
    return f"{_some(extra)} {'was' if len(extra) == 1 else 'were'} {how}"


def _some(entries: list[Any]) -> str:
    """Return the entries themselves, the middle of a long list only counted."""
    if len(entries) <= 4:
        return listing(value(entry, 80) for entry in entries)
    shown = [value(entry, 80) for entry in entries[:3]]
    return listing([*shown, f"{len(entries) - 3} more"])
