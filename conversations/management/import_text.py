"""What `import_sessions` tells a person."""

from __future__ import annotations

from collections.abc import Iterable

from conversations.importing import ImportReport, SourceReport
from mirix.text import visible_line

REASONS_SHOWN = 10
PROBLEMS_SHOWN = 20
FILES_SHOWN = 50
RENAMED_SHOWN = 20


def report_text(total: ImportReport, sources: list[SourceReport], *, is_dry_run: bool) -> str:
    """Return the account of an import: in all, then by file, then what went wrong."""
    did = "Would import" if is_dry_run else "Imported"
    lines = [f"{did} {_sessions_and_turns(total)}", *_details(total)]
    lines += [f"  {_of_source(report)}" for report in sources[:FILES_SHOWN]]
    if len(sources) > FILES_SHOWN:
        lines.append(f"  … and {len(sources) - FILES_SHOWN} more files")
    lines += [
        f"  {_place(p.source, p.line)}: {visible_line(p.reason)}" for p in total.problems[:PROBLEMS_SHOWN]
    ]
    more = total.problem_lines + total.problem_sources - PROBLEMS_SHOWN
    if more > 0:
        lines.append(f"  … and {more} more problems")
    return "\n".join(lines)


def could_not(total: ImportReport) -> str:
    """Return the one line that ends an import with problems."""
    parts = [(total.problem_lines, "line"), (total.problem_sources, "file")]
    return f"{' and '.join(_number(count, what) for count, what in parts if count)} could not be imported."


def _sessions_and_turns(report: ImportReport) -> str:
    unchanged = f" ({report.unchanged} unchanged)" if report.unchanged else ""
    return f"{_number(report.sessions, 'session')}{unchanged}: {_number(report.new_turns, 'new turn')}"


def _details(total: ImportReport) -> list[str]:
    renamed = list(total.renamed.items())
    lines = [
        *_counted("turns", total.turns.most_common()),
        *_counted("skipped", total.skipped.most_common(REASONS_SHOWN)),
        *_counted("left out", total.omitted.most_common(REASONS_SHOWN)),
        *_counted("already stored", [("turns", total.duplicate)]),
        *_counted("cut", [("turns longer than the limit", total.truncated)]),
        *_counted("without an id", [("sessions, called after their file", total.unnamed)]),
        *(f"  renamed          {visible_line(old)} → {new_id}" for old, new_id in renamed[:RENAMED_SHOWN]),
    ]
    if len(renamed) > RENAMED_SHOWN:
        lines.append(f"  … and {len(renamed) - RENAMED_SHOWN} more renamed")
    return lines


def _of_source(report: SourceReport) -> str:
    problems = report.problem_lines + report.problem_sources
    taken_for = f" ({report.taken_for})" if report.taken_for else ""
    faults = f", {_number(problems, 'problem')}" if problems else ""
    return f"{visible_line(report.source)}{taken_for}: {_sessions_and_turns(report)}{faults}"


def _place(source: str, line: int) -> str:
    return f"{visible_line(source)}, line {line}" if line else visible_line(source)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _counted(title: str, counts: Iterable[tuple[str, int]]) -> list[str]:
    listing = ", ".join(f"{count} {visible_line(what)}" for what, count in counts if count)
    return [f"  {title:<16} {listing}"] if listing else []
