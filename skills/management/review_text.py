"""Proposals for a terminal and for programs.

Their texts were written by others, so nothing in them is taken for markup and what cannot be seen is spelled
out.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mirix.text import shorten, visible, visible_line
from skills.content import Content
from skills.models import SkillExperience, SkillRevision
from skills.review.diffs import FieldDiff, changed_words, field_diffs
from skills.review.risks import RISK_LABELS

PLAIN_WIDTH = 110
STYLES = {"equal": "", "insert": "green", "delete": "red"}
MARKS = {"equal": ("", ""), "insert": ("{+", "+}"), "delete": ("[-", "-]")}


def diffs_of(revision: SkillRevision) -> list[FieldDiff]:
    """Return what the revision changes against its base, field by field."""
    before = Content.of(revision.base) if revision.base else None
    return [diff for diff in field_diffs(before, Content.of(revision)) if diff.changed]


def queue_row(revision: Any) -> dict[str, Any]:
    """Return a waiting proposal as data."""
    added, removed = changed_words(diffs_of(revision))
    return {
        "id": revision.pk,
        "name": revision.name,
        "user_id": revision.end_user.user_id,
        "action": revision.action,
        "base_version": revision.base.version if revision.base else None,
        "merges": revision.merged_from.name if revision.merged_from else None,
        "words_added": added,
        "words_removed": removed,
        "evidence": revision.evidence_count,
        "priority": round(revision.priority, 4),
        "risks": revision.risk_flags,
        "unsupported": revision.unsupported,
        "created_at": revision.created_at,
    }


def detail(revision: Any, evidence: Iterable[SkillExperience]) -> dict[str, Any]:
    """Return a revision with its changes and its evidence as data."""
    return queue_row(revision) | {
        "state": revision.state,
        "skill_id": revision.skill_id,
        "run_id": revision.run_id,
        "author_kind": revision.author_kind,
        "rationale": revision.rationale,
        "changes": changes_data(diffs_of(revision)),
        "evidence": [
            {
                "id": experience.pk,
                "session_id": experience.session.session_id,
                "turn_seq": experience.turn_seq,
                "title": experience.title,
                "signal_type": experience.signal_type,
                "importance": experience.importance,
                "credibility": experience.credibility,
                "verified": experience.verified,
                "quote": experience.quote,
            }
            for experience in evidence
        ],
    }


def changes_data(diffs: Iterable[FieldDiff]) -> list[dict[str, Any]]:
    """Return changes as data."""
    return [
        {
            "field": diff.field,
            "added": diff.added,
            "removed": diff.removed,
            "segments": [{"kind": segment.kind, "text": segment.text} for segment in diff.segments],
        }
        for diff in diffs
    ]


def past_table(revisions: Iterable[SkillRevision], current_id: str | None, *, colours: bool) -> str:
    """Return a skill's past as a table; the version of today is marked."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("version", "revision", "action", "state", "by", "when", "why"):
        table.add_column(heading, no_wrap=heading in ("version", "revision"), overflow="fold")
    for revision in revisions:
        mark = "* " if revision.pk == current_id else "  "
        by = revision.author.get_username() if revision.author else revision.author_kind
        table.add_row(
            Text(mark + (revision.version or "–")),
            Text(revision.pk),
            Text(revision.action),
            Text(revision.state),
            Text(visible_line(by)),
            Text(f"{revision.created_at:%Y-%m-%d %H:%M}"),
            Text(visible_line(shorten(revision.rationale, 60))),
        )
    return _rendered([table], colours=colours)


def comparison_page(heading: str, diffs: Sequence[FieldDiff], *, colours: bool) -> str:
    """Return what differs between two revisions."""
    return _rendered([Text(visible_line(heading), style="bold"), *_changes(diffs)], colours=colours)


def _changes(diffs: Iterable[FieldDiff]) -> list[Any]:
    parts: list[Any] = []
    for diff in diffs:
        heading = f"\n{diff.field.replace('_', ' ')}  +{diff.added} −{diff.removed}"
        parts += [Text(heading, style="bold"), Padding(_marked(diff), (0, 0, 0, 2))]
    return parts


def queue_table(rows: Sequence[dict[str, Any]], *, colours: bool) -> str:
    """Return the queue as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("proposal", "skill", "action", "words", "evidence", "priority", "watch", "user"):
        table.add_column(heading, no_wrap=heading == "proposal", overflow="fold")
    for row in rows:
        table.add_row(
            Text(row["id"]),
            Text(visible_line(row["name"])),
            Text(row["action"]),
            Text(f"+{row['words_added']} −{row['words_removed']}"),
            Text(str(row["evidence"])),
            Text(f"{row['priority']:.2f}"),
            Text(str(len(row["risks"]) or "–")),
            Text(visible_line(shorten(row["user_id"], 40))),
        )
    return _rendered([table], colours=colours)


def detail_page(revision: Any, evidence: Sequence[SkillExperience], *, colours: bool) -> str:
    """Return all that a decision needs: what changes, what to watch, and the words behind it."""
    against = f" of {revision.base.version}" if revision.base else ""
    parts: list[Any] = [
        Text(visible_line(revision.name), style="bold"),
        Text(
            f"{revision.get_action_display().lower()}{against}, {revision.get_state_display().lower()} · "
            f"{revision.pk} · by {revision.get_author_kind_display().lower()} · "
            f"user {visible_line(revision.end_user.user_id)}"
        ),
    ]
    if merged := revision.merged_from:
        parts.append(Text(f"takes in {visible_line(merged.name)} {merged.version}, which is archived then"))
    if revision.rationale:
        parts.append(Text(visible(revision.rationale)))
    parts += [Text(f"! {RISK_LABELS.get(flag, flag)}", style="yellow") for flag in revision.risk_flags]
    parts += [Text(f"  in no supporting session: {visible_line(step)}") for step in revision.unsupported]
    parts += _changes(diffs_of(revision))
    parts.append(Text(f"\nevidence ({len(evidence)})", style="bold"))
    parts.append(_evidence_table(evidence))
    return _rendered(parts, colours=colours)


def _marked(diff: FieldDiff) -> Text:
    """Return a text with its changes marked by signs and colours; a new text needs no marks."""
    marks = MARKS if any(segment.kind != "insert" for segment in diff.segments) else {}
    text = Text()
    for segment in diff.segments:
        before, after = marks.get(segment.kind, ("", ""))
        text.append(f"{before}{visible(segment.text)}{after}", style=STYLES[segment.kind])
    return text


def _evidence_table(evidence: Iterable[SkillExperience]) -> Padding:
    table = Table.grid(padding=(0, 2))
    for experience in evidence:
        table.add_row(Text(f"{experience.importance * experience.credibility:.2f}"), _evidence(experience))
    return Padding(table, (0, 0, 0, 2))


def _evidence(experience: SkillExperience) -> Text:
    place = f"session {visible_line(experience.session.session_id)}, turn {experience.turn_seq or '–'}"
    doubt = "" if experience.verified else ", not found word for word"
    return Text.assemble(
        f"{visible_line(experience.title)}\n",
        (f"“{visible(experience.quote)}”\n", "italic"),
        (f"{experience.get_signal_type_display().lower()}, {place}{doubt}", "dim"),
    )


def _rendered(parts: Iterable[Any], *, colours: bool) -> str:
    width = shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if colours else PLAIN_WIDTH
    out = io.StringIO()
    console = Console(
        file=out, force_terminal=colours, width=width, markup=False, emoji=False, highlight=False
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())
