"""What changed arguments teach the next caller, as clauses of a sentence. Pure.

Most of the wording is the distiller's; here values of one session become roles: an enumerated word stays
(`business`), a name does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skills.distillation import advice
from skills.distillation.changes import Change, Kind, entries_only_in, leaves, sort_of
from skills.distillation.wording import code, discreet, listing, mentions, value
from skills.evolution.general import GAP

NAME = "{name}"
MAX_CHANGES = 3
MAX_SAMPLE_CHARS = 80
MAX_AFFIX_CHARS = 12

_FREE_TEXT = re.compile(
    r"(?:^|_)(?:command|cmd|query|sql|code|script|expression|pattern|regex|args|flags)$", re.IGNORECASE
)
_RULES_OUT = re.compile(
    r"\b(?:cannot|can't|can not|not (?:be|allowed|accepted|supported|valid)|invalid|unsupported|only)\b",
    re.IGNORECASE,
)
_ENUMERATED = re.compile(r"[a-z]+(?:[ _-][a-z]+){0,2}|[A-Z]{2,}(?:_[A-Z]+)*")


def remedy(changes: Sequence[Change], error: str) -> str:
    """Return what to do about an error by what was changed: ```use a `credit_card_…` as `payment_id```.

    "" where so much was changed at once that it teaches nothing.
    """
    if len(changes) > MAX_CHANGES:
        names = list(dict.fromkeys(code(change.name, 40) for change in changes))
        return f"change {listing(names)}" if len(names) <= MAX_CHANGES else ""
    names_by_clause: dict[str, list[str]] = {}
    for change in changes:
        names_by_clause.setdefault(_clause(change, error), []).append(code(advice.leaf(change), 60))
    return listing(
        clause.replace(NAME, listing(dict.fromkeys(names))) for clause, names in names_by_clause.items()
    )


def _clause(change: Change, error: str) -> str:
    """Return what to do about one change, with `NAME` for the argument."""
    match change.kind:
        case Kind.FEWER_ENTRIES | Kind.MORE_ENTRIES:
            return _of_entries(change, error)
        case Kind.LOWER | Kind.HIGHER:
            verb = "lower" if change.kind is Kind.LOWER else "raise"
            limit = " to the limit it names" if mentions(error, str(change.after)) else ""
            return f"{verb} {NAME}{limit}"
        case Kind.CASE if not _ENUMERATED.fullmatch(str(change.after)):
            return f"write {NAME} in the right case"
        case Kind.OTHER_WORD if not _ENUMERATED.fullmatch(str(change.after)):
            return f"use another {NAME}"
        case Kind.ADDED if _is_sample(change.after):
            return f"add {NAME}, such as {value(change.after)}"
        case Kind.PREFIX | Kind.SUFFIX if not _has_plain_affix(change):
            return f"write {NAME} in full"
        case Kind.WITHOUT_PREFIX | Kind.WITHOUT_SUFFIX if not _has_plain_affix(change):
            return f"shorten {NAME}"
        case Kind.EDITED | Kind.REPLACED:
            return _of_values(change)
    name = code(advice.leaf(change), 60)
    return advice.do(change, example=False).replace(name, NAME)


def _of_entries(change: Change, error: str) -> str:
    fewer = change.kind is Kind.FEWER_ENTRIES
    extra = entries_only_in(*((change.before, change.after) if fewer else (change.after, change.before)))
    if any(len(str(item)) >= 3 and mentions(error, str(item)) for _, item in leaves(extra)):
        return f"leave the entry it names out of {NAME}" if fewer else f"add the entry it names to {NAME}"
    return f"send fewer entries in {NAME}" if fewer else f"send all entries in {NAME}"


def _of_values(change: Change) -> str:
    before, after = change.before, change.after
    if _is_free_text(change):
        return f"send {_sample(after)} as {NAME} rather than {_sample(before)}"
    if isinstance(before, str) and isinstance(after, str):
        if before and before in after:
            return f"make {NAME} longer"
        if after and after in before:
            return f"make {NAME} shorter"
    return f"use another {NAME}"


def changes_outcome(change: Change) -> bool:
    """Return whether a change alters what gets done, not only how it is written or which id stands for it."""
    kinds = {Kind.OTHER_WORD, Kind.FEWER_ENTRIES, Kind.MORE_ENTRIES, Kind.LOWER, Kind.HIGHER}
    return change.kind in kinds


def serial_pitfall(changes: Sequence[Change], error: str) -> str:
    """Return a warning when one id after another of the same sort met the same error; "" otherwise."""
    befores = {str(change.before) for change in changes}
    sorts = {sort_of(str(change.before)) for change in changes}
    if len(befores) < 2 or len(sorts) != 1 or "" in sorts:
        return ""
    return (
        f"Going through one {code(next(iter(sorts)) + GAP)} after another "
        f"as {code(advice.leaf(changes[0]), 60)}: “{error}” came back each time."
    )


def refused_sort(change: Change, error: str) -> str:
    """Return a warning against a sort of id that the error itself rules out; "" where it does not."""
    sort = sort_of(str(change.before)) if change.kind is Kind.OTHER_SORT else ""
    word = sort.strip("_:-").replace("_", " ")
    if not word or not mentions(error, word) or not _RULES_OUT.search(error):
        return ""
    return f"Passing a {code(sort + GAP)} as {code(advice.leaf(change), 60)}: “{error}”."


def _is_sample(item: object) -> bool:
    """Return whether a value may stand as an example: a switch, a small number, an enumerated word."""
    if isinstance(item, bool):
        return True
    if isinstance(item, int):
        return abs(item) < 1_000
    return isinstance(item, str) and len(item) <= 20 and _ENUMERATED.fullmatch(item) is not None


def _has_plain_affix(change: Change) -> bool:
    short, long = sorted((str(change.before), str(change.after)), key=len)
    affix = long.removesuffix(short) if long.endswith(short) else long.removeprefix(short)
    return len(affix) <= MAX_AFFIX_CHARS and not re.search(r"\d", affix)


def _is_free_text(change: Change) -> bool:
    """Return whether both values are short commands or the like, so that seeing them helps."""
    before, after = (str(text) for text in (change.before, change.after))
    return (
        _FREE_TEXT.search(advice.leaf(change)) is not None
        and max(len(before), len(after)) <= MAX_SAMPLE_CHARS
        and discreet(before) != discreet(after)
    )


def _sample(text: object) -> str:
    return code(discreet(str(text)), MAX_SAMPLE_CHARS)
