"""`prune_conversations`: let go of what is too old, without waiting for the worker's next look."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from conversations.retention import Pruned, prune, steps
from mirix.commands import DataCommand
from mirix.tenants.models import Organization
from mirix.tenants.selectors import find_organization
from mirix.text import visible_line


class Command(DataCommand):
    """Prune every organization by its own limits, or the one that is named."""

    help = "Prune turns, bodies of requests and raw replies that were kept for as long as the settings say."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--organization` and `--dry-run`."""
        parser.add_argument("--organization", metavar="NAME", help="this one only; name or id")
        parser.add_argument("--dry-run", action="store_true", help="count what is due, and prune nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune, and say what went where."""
        is_dry = options["dry_run"]
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            TextColumn("{task.completed:,.0f} rows"),
            TimeElapsedColumn(),
        )
        results: list[Pruned] = []
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("pruning", total=None)
            for organization in self._organizations(options["organization"]):
                progress.update(task, description=f"pruning {escape(visible_line(organization.name))}")
                results.append(
                    prune(
                        organization=organization,
                        dry_run=is_dry,
                        watch=lambda kind, count: progress.advance(task, count),
                    )
                )
        self._answer(results, is_dry)

    @staticmethod
    def _organizations(name: str | None) -> list[Organization]:
        if name is None:
            return list(Organization.objects.order_by("name"))
        organization = find_organization(name=name)
        if organization is None:
            raise CommandError(f"unknown organization {name!r}")
        return [organization]

    def _answer(self, results: list[Pruned], is_dry: bool) -> None:
        totals = {step.kind: sum(result.counts[step.kind] for result in results) for step in steps()}
        data = {
            "dry_run": is_dry,
            "pruned": totals,
            "organizations": [
                {"organization": result.organization.name, "pruned": result.counts} for result in results
            ],
        }
        head = "Would go:" if is_dry else "Went:"
        lines = [
            f"{visible_line(result.organization.name)}: {_in_words(result)}"
            for result in results
            if result.total
        ]
        self.answer(data, "\n".join([head, *lines]) if lines else "Nothing is due.")


def _in_words(result: Pruned) -> str:
    return ", ".join(
        f"{result.counts[step.kind]} {step.what}" for step in steps() if result.counts[step.kind]
    )
