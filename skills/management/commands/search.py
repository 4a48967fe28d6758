"""Find skills as an agent would, from the command line."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from mirix.commands import number, whole
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import find_owner_of
from mirix.text import shorten, visible_line
from skills.models import SearchSource, Skill
from skills.search.lanes import Lane, LaneRow, lanes_of
from skills.search.log import log_search
from skills.search.service import FIELDS, MAX_LIMIT, METHODS, Hit, SearchResult, search
from skills.search.shown import within_budget
from skills.search.tags import parse_filter_tags

DESCRIPTION_CHARS = 100
MAX_BUDGET = 10_000_000


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
            "--token-budget",
            type=whole(low=1, high=MAX_BUDGET),
            metavar="N",
            help="cut the list from its end to what takes about so many tokens",
        )
        parser.add_argument(
            "--similarity-threshold",
            type=number(above=0, high=2),
            metavar="D",
            help="the cosine distance, at most 2, that a meaning must be below; default: none",
        )
        parser.add_argument(
            "--explain",
            action="store_true",
            help="show the matched terms, each skill's rank and score per lane, and the lanes themselves",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Search and show what was found, best first."""
        organization = self.organization(options)
        owner = None
        if options["user"] is not None:
            owner = find_owner_of(organization=organization, user_id=options["user"])
            if owner is None:
                raise CommandError(f"unknown user {options['user']!r} in organization {organization.name!r}")
        began = perf_counter()
        try:
            filter_tags = parse_filter_tags(options["filter_tags"])
            result = search(
                organization=organization,
                owner=owner,
                query=options["query"],
                method=options["method"],
                field=options["field"],
                limit=options["limit"],
                filter_tags=filter_tags,
                explain=options["explain"],
                similarity_threshold=options["similarity_threshold"],
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        seconds = perf_counter() - began
        shown = within_budget(result.hits, budget=options["token_budget"])
        result = replace(result, hits=shown.hits)
        lanes = None
        if options["explain"]:
            lanes = lanes_of(organization=organization, owner=owner, result=result, depth=options["limit"])
        self.answer(_as_data(result, shown.message, lanes), _as_text(result, shown.message, owner, lanes))
        log_search(
            organization=organization,
            owner=owner,
            source=SearchSource.COMMAND,
            query=options["query"],
            field=options["field"],
            filter_tags=filter_tags,
            similarity_threshold=options["similarity_threshold"],
            limit=options["limit"],
            token_budget=options["token_budget"],
            result=result,
            returned=shown.hits,
            seconds=seconds,
        )


def _as_data(result: SearchResult, message: str, lanes: list[Lane] | None) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "search_method": result.method,
        "degraded": result.degraded,
        "count": len(result.hits),
        "total_count": result.total_count,
        "results": [_row(hit, lanes is not None) for hit in result.hits],
    }
    if lanes is not None:
        answer["lanes"] = {lane.name: [_lane_row(row) for row in lane.rows] for lane in lanes}
    return answer | {"message": message} if message else answer


def _lane_row(row: LaneRow) -> dict[str, Any]:
    return {
        "rank": row.rank,
        "id": row.skill.pk,
        "name": row.skill.name,
        "score": row.score,
        "returned_as": row.place,
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


def _as_text(result: SearchResult, message: str, owner: Owner | None, lanes: list[Lane] | None) -> str:
    lines = []
    for place, hit in enumerate(result.hits, start=1):
        score = "" if hit.score is None else f"  {hit.score:.4f}"
        lines.append(f"{place:>3}  {hit.skill.name} {hit.skill.version}{score}{_whose(hit.skill, owner)}")
        lines.append(f"     {shorten(hit.skill.description, DESCRIPTION_CHARS)}")
        if lanes is not None:
            places = ", ".join(
                f"{lane} #{there.rank} ({there.score:.3f})" for lane, there in hit.lanes.items()
            )
            lines.append(f"     {places or 'not ranked'}; terms: {', '.join(hit.terms) or 'none'}")
    for lane in lanes or []:
        lines += _lane_lines(lane, owner)
    if message:
        lines.append(message)
    note = f"; degraded: {result.degraded}" if result.degraded else ""
    lines.append(f"{len(result.hits)} of {result.total_count} found by {result.method}{note}")
    return "\n".join(map(visible_line, lines))


def _lane_lines(lane: Lane, owner: Owner | None) -> list[str]:
    """Return a lane as a table: rank, score, place in the answer, skill."""
    told = "could not answer" if lane.is_missing else f"{lane.total} ranked"
    return [
        f"lane {lane.name}: {told}",
        *(
            f"{row.rank:>5}  {row.score:>8.3f}  {f'as {row.place}' if row.place else '-':<6}  "
            f"{row.skill.name}{_whose(row.skill, owner)}"
            for row in lane.rows
        ),
    ]


def _whose(skill: Skill, owner: Owner | None) -> str:
    return "" if owner else f"  [{skill.end_user.user_id}]"
