"""`export_skills`: skills as SKILL.md, one file, a tree of folders or a ZIP."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q, QuerySet

from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Organization
from mirix.tenants.selectors import find_owner_of
from mirix.text import clean_text, visible
from skills.interop.exporting import top_of, tree
from skills.interop.targets import Refused, write_file, write_tree, write_zip
from skills.models import Skill, SkillStatus
from skills.selectors.skills import skills_of

STDOUT = "-"


class Command(OrganizationCommand):
    """Write skills as SKILL.md: the same bytes for the same skills, wherever and whenever.

    `--to` names a folder, which gets one folder for each skill; a file that ends with .zip; or, for a single
    skill, a file that ends with .md, or `-` for standard output. Without skills all active ones of the end
    user are written, or of the whole organization in a folder for each end user.
    """

    help = "Export skills as SKILL.md files: a folder tree, a ZIP or a single file."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take which skills, and where to."""
        super().add_arguments(parser)
        parser.add_argument("skills", nargs="*", metavar="SKILL", help="names or ids; omitted: all active")
        parser.add_argument("--user", metavar="USER_ID", help="one end user; omitted: all of them")
        parser.add_argument("--to", required=True, metavar="PATH", help="folder, FILE.zip, FILE.md or -")
        parser.add_argument("--all", action="store_true", help="archived and quarantined skills too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the files."""
        rows = self.rows(self.organization(options), options)
        files = tree(skills=rows.order_by("name", "pk"))
        if not files:
            raise CommandError("there is no skill to export")
        target = options["to"]
        try:
            changed, unchanged = self.write(target, files)
        except Refused as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"cannot write {target}: {error.strerror or error}") from error
        if target == STDOUT:
            return
        same = f", {unchanged} as before" if unchanged else ""
        self.answer(
            {"to": target, "skills": len(files), "changed": changed, "unchanged": unchanged}
            | {"files": [path for path, _ in files]},
            f"Exported {len(files)} skill{'' if len(files) == 1 else 's'} to {target}{same}.",
        )

    def rows(self, organization: Organization, options: dict[str, Any]) -> QuerySet[Skill]:
        """Return the skills that are meant; an unknown one is an operator's error."""
        rows: QuerySet[Skill] = skills_of(organization=organization).select_related("organization")
        if options["user"] is not None:
            owner = find_owner_of(organization=organization, user_id=options["user"])
            if owner is None:
                raise CommandError(f"unknown user {options['user']!r} in organization {organization.name!r}")
            rows = rows.filter(end_user=owner.end_user)
        wanted = {clean_text(name) for name in options["skills"]}
        if not wanted:
            return rows if options["all"] else rows.filter(status=SkillStatus.ACTIVE)
        rows = rows.filter(Q(name__in=wanted) | Q(pk__in=wanted))
        found = {key for pair in rows.values_list("name", "pk") for key in pair}
        if missing := sorted(wanted - found):
            raise CommandError(f'unknown skill {missing[0]!r}; `search ""` lists those that are there')
        return rows

    def show(self, text: str) -> None:
        """Write one file to standard output: byte for byte, unless a terminal would obey what is in it."""
        if self.as_json:
            self.answer({"to": STDOUT, "skills": 1, "file": text}, "")
        else:
            self.stdout.write(visible(text) if self.stdout.isatty() else text, ending="")

    def write(self, target: str, files: list[tuple[str, bytes]]) -> tuple[int, int]:
        """Write the files to where the name of the target says; return how many changed and stayed."""
        path = Path(target)
        if target == STDOUT or path.suffix.lower() == ".md":
            if len(files) > 1:
                raise CommandError(f"{len(files)} skills do not fit into one file; name one, or a folder")
            data = files[0][1]
            if target == STDOUT:
                self.show(data.decode())
            else:
                write_file(path, data)
        elif path.suffix.lower() == ".zip":
            stream = io.BytesIO()
            write_zip(stream, files, top_of([name for name, _ in files]))
            write_file(path, stream.getvalue())
        else:
            return write_tree(path, files)
        return len(files), 0
