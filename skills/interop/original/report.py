"""What an import found and did, table by table. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class TableReport:
    """What became of the rows of one table; `rows` is the sum of the three kinds.

    `skipped` and `notes` are counts by reason: what was left behind, and what is not as it was.
    """

    table: str
    generation: str
    rows: int = 0
    imported: int = 0
    unchanged: int = 0
    """Rows that an earlier import brought."""
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self) | {"skipped": dict(+self.skipped), "notes": dict(+self.notes)}


@dataclass(frozen=True, kw_only=True)
class LeftBehind:
    """A table that is not imported, and why."""

    table: str
    rows: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Moved:
    """An organization of the original, or the part of it that has one scope, and what it is here."""

    original_id: str
    original_name: str
    scope: str | None
    id: str
    name: str
    is_new: bool


@dataclass(kw_only=True)
class ImportReport:
    """The account of an import."""

    database: str
    tables: list[TableReport] = field(default_factory=list)
    left_behind: list[LeftBehind] = field(default_factory=list)
    organizations: list[Moved] = field(default_factory=list)

    @property
    def imported(self) -> int:
        """How many rows came over."""
        return sum(table.imported for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "database": self.database,
            "imported": self.imported,
            "unchanged": sum(table.unchanged for table in self.tables),
            "skipped": sum(table.skipped.total() for table in self.tables),
            "organizations": [vars(moved) for moved in self.organizations],
            "tables": [table.as_dict() for table in self.tables],
            "left_behind": [vars(table) for table in self.left_behind],
        }
