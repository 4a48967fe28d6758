"""The lexical index: how it stands, and how to write it anew."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Organization
from skills.search.index import rebuild, status


class Command(OrganizationCommand):
    """`search_index status` and `search_index rebuild`; the services keep the index by themselves."""

    help = "Show the search index (status), or write it anew from the skills (rebuild)."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do, and where."""
        parser.add_argument("action", choices=["status", "rebuild"])
        parser.add_argument("--organization", metavar="NAME", help="name or id; omitted: all of them")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it and tell how the index stands afterwards."""
        organization = self.organization(options) if options["organization"] else None
        if options["action"] == "rebuild":
            self._rebuild(organization)
        state = status(organization)
        text = (
            f"{state.active} active skills, {state.missing} of them not indexed; "
            f"{state.outdated} indexed that are not active; {state.postings} postings"
        )
        if state.missing or state.outdated:
            text += "\nwrite it anew with: ./run search_index rebuild"
        self.answer(asdict(state), text)

    def _rebuild(self, organization: Organization | None) -> None:
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("indexing", total=status(organization).active)
            indexed = rebuild(organization, progress=lambda seen: progress.update(task, completed=seen))
        self.say(f"{indexed} skills indexed")
