"""Find skills as an agent would, from the command line."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.commands import whole
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_owner_of
from mirix.text import shorten, visible_line
from skills.search.service import FIELDS, MAX_LIMIT, METHODS, Hit, SearchResult, search
from skills.search.tags import parse_filter_tags

DESCRIPTION_CHARS = 100


class Command(OrganizationCommand):
    """Search the skills of one end user, or with no `--user` those of the whole organization."""

    help = "Find published skills by a question in plain words."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the question and the parameters of the API."""
        super().add_arguments(parser)
        parser.add_argument("query", help="what to do, in plain words; empty: the newest skills")
        parser.add_argument("--user", metavar="USER_ID", help="one end user; omitted: all of them")
        parser.add_argument("--method", default="", choices=METHODS, help="default: the server's")
        parser.add_argument("--field", default="", choices=FIELDS, help="search this field alone")
        parser.add_argument(
            "--limit",
            type=whole(low=1, high=MAX_LIMIT),
            default=10,
            metavar="N",
            help="1 to 100, 10 by default",
        )
        parser.add_argument("--filter-tags", default="", metavar="JSON", help="an object, as in the API")
        parser.add_argument(
            "--explain", action="store_true", help="show rank and score per lane, and the matched terms"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Search and show what was found, best first."""
        organization = self.organization(options)
        owner = None
        if options["user"] is not None:
            owner = find_owner_of(organization=organization, user_id=options["user"])
            if owner is None:
                raise CommandError(f"unknown user {options['user']!r} in organization {organization.name!r}")
        try:
            result = search(
                organization=organization,
                owner=owner,
                query=options["query"],
                method=options["method"],
                field=options["field"],
                limit=options["limit"],
                filter_tags=parse_filter_tags(options["filter_tags"]),
                explain=options["explain"],
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        self.answer(_as_data(result, options["explain"]), _as_text(result, owner, options["explain"]))


def _as_data(result: SearchResult, explain: bool) -> dict[str, Any]:
    return {
        "search_method": result.method,
        "degraded": result.degraded,
        "count": len(result.hits),
        "total_count": result.total_count,
        "results": [_row(hit, explain) for hit in result.hits],
    }


def _row(hit: Hit, explain: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": hit.skill.pk,
        "user_id": hit.skill.end_user.user_id,
        "name": hit.skill.name,
        "version": hit.skill.version,
        "description": hit.skill.description,
        "score": hit.score,
    }
    if explain:
        row["lanes"] = {lane: {"rank": place.rank, "score": place.score} for lane, place in hit.lanes.items()}
        row["matched_terms"] = hit.terms
    return row


def _as_text(result: SearchResult, owner: Owner | None, explain: bool) -> str:
    lines = []
    for number, hit in enumerate(result.hits, start=1):
        score = "" if hit.score is None else f"  {hit.score:.4f}"
        whose = "" if owner else f"  [{hit.skill.end_user.user_id}]"
        lines.append(f"{number:>3}  {hit.skill.name} {hit.skill.version}{score}{whose}")
        lines.append(f"     {shorten(hit.skill.description, DESCRIPTION_CHARS)}")
        if explain:
            lanes = ", ".join(
                f"{lane} #{place.rank} ({place.score:.3f})" for lane, place in hit.lanes.items()
            )
            lines.append(f"     {lanes or 'not ranked'}; terms: {', '.join(hit.terms) or 'none'}")
    note = f"; degraded: {result.degraded}" if result.degraded else ""
    lines.append(f"{len(result.hits)} of {result.total_count} found by {result.method}{note}")
    return "\n".join(map(visible_line, lines))
