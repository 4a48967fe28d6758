"""The content of a skill as a value: what a revision snapshots, hashes and compares. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
MAX_INSTRUCTIONS_CHARS = 65_536
MAX_TRIGGERS = 50
MAX_TRIGGER_CHARS = 512
MAX_EXAMPLES = 50
MAX_EXAMPLES_CHARS = 65_536
MAX_FILTER_TAGS_CHARS = 65_536
# PostgreSQL reads it too, where `\d` would not mean ASCII alone.
VERSION_PATTERN = (
    r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})"
    r"(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$"
)
SEMVER = re.compile(VERSION_PATTERN)
ENTRY_TYPES = ("workflow", "guide", "script")
KINDS = (
    ("guide", ("how",)),
    ("workflow", ("workflow", "process", "procedure", "sop", "runbook", "playbook", "checklist", "routine")),
    ("script", ("script", "code", "command", "snippet", "shell", "query")),
    ("guide", ("guide", "manual", "tutorial", "reference")),
)


def entry_type_of(value: object) -> str:
    """Return the kind that a free text means: the lenient reader of what today's rules would refuse.

    One of `ENTRY_TYPES` stays, in any case. Else what contains `how` is a guide; what names a process, a
    script or a guide by one of `KINDS` is that, in this order; all others are workflows.
    """
    lowered = value.strip().lower() if isinstance(value, str) else ""
    if lowered in ENTRY_TYPES:
        return lowered
    return next((kind for kind, words in KINDS if any(word in lowered for word in words)), "workflow")


def json_chars(value: Any) -> int:
    """Return how many characters `value` has as JSON: what the bounds of examples and tags count."""
    return len(json.dumps(value, ensure_ascii=False))


def fitting(examples: list[Any]) -> list[Any]:
    """Return the first of `examples`, as many as a skill may have."""
    kept = examples[:MAX_EXAMPLES]
    while json_chars(kept) > MAX_EXAMPLES_CHARS:
        kept = kept[:-1]
    return kept


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything of a skill that a reviewer reads and an agent receives."""

    name: str
    description: str
    instructions: str
    entry_type: str = "workflow"
    triggers: list[str] = field(default_factory=list)
    examples: list[Any] = field(default_factory=list)
    filter_tags: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Any) -> Content:
        """Return the content of a `Skill` or a `SkillRevision`; its kind is read leniently."""
        found = {name: getattr(row, name) for name in cls.__dataclass_fields__}
        return cls(**found | {"entry_type": entry_type_of(found["entry_type"])})

    def as_fields(self) -> dict[str, Any]:
        """Return the content as model fields."""
        return asdict(self)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) over the canonical JSON of the content."""
        canonical = json.dumps(asdict(self), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def next_patch(version: str) -> str:
    """Return the next version of a skill: the patch raised; whatever is not semantic counts as 0.1.0.

    What is behind the patch (`1.2.3-rc.1+build`) goes, and a version never falls back.
    """
    found = SEMVER.fullmatch(version)
    return f"{found[1]}.{found[2]}.{int(found[3]) + 1}" if found else "0.1.1"
