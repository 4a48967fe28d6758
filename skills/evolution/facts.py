"""The facts of an experience, read from its details; whatever is missing or odd there is left out. Pure.

The schema is that of `skills.distillation.offline`. An experience without details, a model's for instance,
has only its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skills.distillation.amounts import Comparison
from skills.distillation.changes import ABSENT, Change
from skills.distillation.talk_lessons import NO_STEP
from skills.distillation.wording import inert, said
from skills.evolution.general import GAP, without_particulars
from skills.evolution.types import ExperienceView

MAX_ERROR_CHARS = 160
MAX_TOOL_CHARS = 80


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of one experience as data; empty where nothing is."""

    pattern: str = ""
    tool: str = ""
    error: str = ""
    """The error without the values of its call, without quotation marks of its own."""
    raw_error: str = ""
    changes: tuple[Change, ...] = ()
    telling: tuple[Change, ...] = ()
    """The changes that speak to the error; all of them where none is known to."""
    compared: Comparison | None = None
    """What the error holds against a number that was sent."""
    named: tuple[str, ...] = ()
    """The arguments whose value the error names, without their paths."""
    between: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    instead: str = ""
    request: str = ""
    said: str = ""

    @classmethod
    def of(cls, experience: ExperienceView) -> Facts:
        """Return the facts of an experience."""
        details = experience.details if isinstance(experience.details, dict) else {}
        changes = tuple(_changes(details.get("changes")))
        telling = set(_texts(details.get("telling")))
        error = _text(details.get("error"))
        return cls(
            pattern=_text(details.get("pattern")),
            tool=inert(_text(details.get("tool")), MAX_TOOL_CHARS),
            error=_error(_text(details.get("error_pattern")) or error, error, changes),
            raw_error=error,
            changes=changes,
            telling=tuple(change for change in changes if change.argument in telling) or changes,
            compared=Comparison.from_data(details.get("compared")),
            named=tuple(dict.fromkeys(map(leaf_name, _texts(details.get("named"))))),
            between=_tools(details.get("between")),
            steps=_tools(details.get("steps")),
            instead=next(iter(_tools([details.get("instead")])), ""),
            request=_text(details.get("request")),
            said=_text(details.get("said")),
        )


def topic_parts(topic: str) -> tuple[str, str]:
    """Return the kind (`tool`, `task` or "") and the name of a topic."""
    kind, separator, name = topic.partition(":")
    return (kind, name.strip()) if separator and kind in {"tool", "task"} else ("", topic.strip())


def leaf_name(path: str) -> str:
    """Return the argument's own name at the end of a path such as `flights[2].date`."""
    return re.sub(r"(?:\[\d*\])+$", "", path).rsplit(".", 1)[-1] or path


def _error(pattern: str, error: str, changes: Sequence[Change]) -> str:
    """Return the kind of error; the error itself where too little of it is left as a kind."""
    kind = pattern
    for change in changes:
        if isinstance(change.before, int | float) and not isinstance(change.before, bool):
            kind = re.sub(rf"(?<![\w.]){re.escape(str(change.before))}(?![\w.])", GAP, kind)
    kind = without_particulars(kind)
    return said(kind if len(re.findall(r"[^\W\d_]{2,}", kind)) >= 2 else error, MAX_ERROR_CHARS)[1:-1]


def _changes(value: Any) -> list[Change]:
    entries = value if isinstance(value, list) else []
    return [
        Change(entry["argument"], entry.get("before", ABSENT), entry.get("after", ABSENT))
        for entry in entries
        if isinstance(entry, dict)
        and isinstance(entry.get("argument"), str)
        and entry["argument"].strip()
        and entry.get("before", ABSENT) != entry.get("after", ABSENT)
    ]


def _tools(value: Any) -> tuple[str, ...]:
    """Return the names of tools that do something."""
    names = (inert(name, MAX_TOOL_CHARS) for name in _texts(value))
    return tuple(dict.fromkeys(name for name in names if name and name.casefold() not in NO_STEP))


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
