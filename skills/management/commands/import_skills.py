"""`import_skills`: SKILL.md files, folders and ZIPs become proposals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from mirix.commands import DataCommand
from mirix.tenants.commands import create_missing_owner
from mirix.text import visible_line
from skills.interop.importing import ImportOutcome, ImportStatus, counts_of, import_skills
from skills.interop.sources import Found, find

WORDS = {
    ImportStatus.NEW: "new skill",
    ImportStatus.EDIT: "edit",
    ImportStatus.UNCHANGED: "unchanged",
    ImportStatus.REFUSED: "REFUSED",
}


class Command(DataCommand):
    """Propose what SKILL.md files hold; a reviewer decides.

    Of a folder everything below it is looked at, of a ZIP its table of contents. A skill of the same name
    becomes an edit, what says the same is unchanged. What is refused is named with its reason, the rest goes
    on, and the exit code is 1. Organization and end user are made when missing and there is a skill for them.
    """

    help = "Import SKILL.md files, folders or ZIPs as proposals; nothing is published before a review."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take paths and the owner."""
        parser.add_argument("paths", nargs="+", metavar="PATH", help="SKILL.md, folder or ZIP")
        parser.add_argument("--organization", required=True, metavar="NAME", help="made when missing")
        parser.add_argument("--user", required=True, metavar="USER_ID", help="end user; made when missing")
        parser.add_argument("--dry-run", action="store_true", help="report what would happen, write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import everything and report each file."""
        is_dry_run = options["dry_run"]
        if is_dry_run:
            self.say("dry run: nothing of this is kept")
        with _kept(not is_dry_run):
            owner = partial(
                create_missing_owner, self, organization=options["organization"], user_id=options["user"]
            )
            outcomes = list(import_skills(owner=owner, found=_find_all(options["paths"])))
        counts = counts_of(outcomes)
        self.answer(
            {"dry_run": is_dry_run, "counts": counts}
            | {"files": [_as_data(outcome, is_dry_run) for outcome in outcomes]},
            _as_text(outcomes, counts, is_dry_run),
        )
        if refused := counts[ImportStatus.REFUSED]:
            raise CommandError(f"{refused} file{'' if refused == 1 else 's'} could not be imported.")


def _find_all(names: list[str]) -> Iterator[Found]:
    for name in names:
        try:
            yield from find(Path(name))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield Found(place=name, problem=f"It cannot be read: {reason}.")


@contextmanager
def _kept(is_kept: bool) -> Iterator[None]:
    """Do everything, and keep it only if asked: what a dry run reports is what really would happen."""
    if is_kept:
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _as_data(outcome: ImportOutcome, is_dry_run: bool) -> dict[str, Any]:
    made = outcome.status in (ImportStatus.NEW, ImportStatus.EDIT)
    return outcome.as_dict() | ({"proposal": None} if is_dry_run and made else {})


def _as_text(outcomes: list[ImportOutcome], counts: dict[str, int], is_dry_run: bool) -> str:
    lines = []
    for outcome in outcomes:
        reason = f": {outcome.reason}" if outcome.reason else ""
        name = outcome.name or "–"
        lines.append(f"{WORDS[outcome.status]:<10} {name}  ({outcome.file}){reason}")
        lines += [f"           note: {warning}" for warning in outcome.warnings]
    proposed = counts[ImportStatus.NEW] + counts[ImportStatus.EDIT]
    lines.append(
        f"{'Would propose' if is_dry_run else 'Proposed'} {proposed} ({counts['new']} new, "
        f"{counts['edit']} edits); {counts['unchanged']} unchanged, {counts['refused']} refused."
    )
    return "\n".join(map(visible_line, lines))
