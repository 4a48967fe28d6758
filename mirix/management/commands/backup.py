"""`backup`: the whole database in one file, while everything goes on."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from mirix.commands import DataCommand
from mirix.dumps import DumpFailed, back_up
from mirix.ownership import hand_over, make_state_dir

FOLDER = "backups"


class Command(DataCommand):
    """See `mirix.dumps`."""

    help = "Write the whole database into a file; others may go on working. `restore` reads it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add where to write."""
        parser.add_argument("file", nargs="?", help=f"default: {FOLDER}/mirix-TIME.dump in MIRIX_VAR_DIR")
        parser.add_argument("--replace", action="store_true", help="write over a file that is there")

    def check_migrations(self) -> None:
        """Do without: a backup comes before migrations."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file and say what it is."""
        began = monotonic()
        path = Path(options["file"]).absolute() if options["file"] else _new_file()
        try:
            backup = back_up(path=path, replace=options["replace"])
        except DumpFailed as error:
            raise CommandError(str(error)) from error
        if not options["file"]:
            hand_over(backup.path, make_state_dir(settings.VAR_DIR))
        seconds = round(monotonic() - began, 3)
        self.answer(
            {
                "file": str(backup.path),
                "bytes": backup.size,
                "sha256": backup.sha256,
                "seconds": seconds,
            },
            f"{backup.path}: {backup.size:,} bytes, SHA-256 {backup.sha256}.\n"
            "The secret key is not in it: keep MIRIX_SECRET_KEY, or var/secret_key, in another place.",
        )


def _new_file() -> Path:
    account = make_state_dir(settings.VAR_DIR)
    folder = settings.VAR_DIR / FOLDER
    if not folder.exists():
        folder.mkdir(mode=0o700)
        hand_over(folder, account)
    return folder / f"mirix-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.dump"
