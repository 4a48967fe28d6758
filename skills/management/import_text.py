"""What `import_mirix` tells a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mirix.text import visible_line
from skills.interop.original.report import ImportReport, Moved, TableReport

ORGANIZATIONS_SHOWN = 50
REASONS_SHOWN = 20


def report_text(report: ImportReport, *, is_dry_run: bool) -> str:
    """Return the account of an import: in all, whose it is, table by table, and what stayed behind."""
    did = "Would import" if is_dry_run else "Imported"
    lines = [f"{did} {_number(report.imported, 'row')} from “{visible_line(report.database)}”."]
    lines += [f"  {_organization(moved)}" for moved in report.organizations[:ORGANIZATIONS_SHOWN]]
    if (more := len(report.organizations) - ORGANIZATIONS_SHOWN) > 0:
        lines.append(f"  … and {more} more organizations")
    for table in report.tables:
        lines += _table(table)
    lines += [
        f"{visible_line(table.table)}: {_number(table.rows, 'row')} left behind ({table.reason})"
        for table in report.left_behind
    ]
    return "\n".join(lines)


def _organization(moved: Moved) -> str:
    known = "" if moved.is_new else ", known from before"
    original = visible_line(moved.original_name or moved.original_id)
    return f"organization “{original}” → “{moved.name}” ({moved.id}{known})"


def _table(table: TableReport) -> Iterator[str]:
    generation = f" ({table.generation})" if table.generation else ""
    counts = [f"{table.imported:,} imported", f"{table.unchanged:,} here already"]
    if skipped := table.skipped.total():
        counts.append(f"{skipped:,} skipped")
    yield f"{table.table}{generation}: {_number(table.rows, 'row')}, {', '.join(counts)}"
    yield from _reasons("skipped", table.skipped)
    yield from _reasons("note", table.notes)


def _reasons(what: str, counts: Counter[str]) -> Iterator[str]:
    found = [(reason, count) for reason, count in counts.most_common() if count]
    for reason, count in found[:REASONS_SHOWN]:
        yield f"  {what}: {visible_line(reason)} ({count:,})"
    if (more := len(found) - REASONS_SHOWN) > 0:
        yield f"  … and {more} more reasons"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
