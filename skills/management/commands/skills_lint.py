"""Look a library over: near-duplicates with what merging them would come to, and what else is wrong."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import EndUser, Organization
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import effective, find_owner_of
from mirix.text import visible_line
from skills.evolution.lint import Finding, Report, Twins, lint
from skills.evolution.types import SkillView
from skills.models import Skill, SkillRevision

BY = {
    "name": "by name",
    "words": "by words, {:.2f}",
    "meaning": "by meaning, {:.3f}",
    "steps": "by the tools and steps that they name, {:.2f}",
}


class Command(OrganizationCommand):
    """List what is one too many or could serve better; exit code 1 when there is anything."""

    help = (
        "List near-duplicates in a library, each with a proposal to merge them, and skills that cannot serve "
        "as they are. Changes nothing; exit code 1 when anything was found."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whose library."""
        super().add_arguments(parser)
        parser.add_argument("--user", metavar="USER_ID", help="of this end user alone (default: of each)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Look at one library after the other, and say what was found."""
        organization = self.organization(options)
        owners = self.owners(organization, options["user"])
        reports = {owner.end_user.user_id: lint(owner=owner) for owner in owners}
        self.answer(_data(reports, organization), _text(reports, organization))
        if not all(report.is_clean for report in reports.values()):
            sys.exit(1)

    def owners(self, organization: Organization, user: str | None) -> list[Owner]:
        """Return the owner that is meant, or all of the organization that have anything to look at."""
        if user is not None:
            owner = find_owner_of(organization=organization, user_id=user)
            if owner is None:
                raise CommandError(f"unknown user {user!r} in organization {organization.name!r}")
            return [owner]
        rows = (model.objects.for_organization(organization) for model in (Skill, SkillRevision))
        ids = {pk for found in rows for pk in found.values_list("end_user", flat=True).distinct()}
        users = EndUser.objects.for_organization(organization).filter(pk__in=ids).order_by("user_id")
        return [Owner(organization=organization, end_user=end_user) for end_user in users]


def _data(reports: dict[str, Report], organization: Organization) -> dict[str, Any]:
    return {
        "looked_at": sum(report.looked_at for report in reports.values()),
        "without_vector": sum(report.without_vector for report in reports.values()),
        "near_duplicates": [
            {"user_id": user_id} | _twins(twins, organization)
            for user_id, found in reports.items()
            for twins in found.twins
        ],
        "findings": [
            {"user_id": user_id} | _view(finding.view) | {"rule": finding.rule, "message": finding.message}
            for user_id, found in reports.items()
            for finding in found.findings
        ],
    }


def _twins(twins: Twins, organization: Organization) -> dict[str, Any]:
    near = asdict(twins.near)
    merged = {key: value for key, value in twins.merged.as_fields().items() if key != "filter_tags"}
    found = {"keep": _view(twins.keep), "drop": _view(twins.drop)} | near
    return found | {"adds": twins.adds, "merged": merged, "next": _next(twins, organization)}


def _view(view: SkillView) -> dict[str, Any]:
    named = {"name": view.content.name, "status": view.status}
    return {"skill_id": view.skill_id, "revision_id": view.revision_id} | named


def _text(reports: dict[str, Report], organization: Organization) -> str:
    lines = []
    for user_id, report in reports.items():
        own = [
            *(_of_twins(twins, organization) for twins in report.twins),
            *map(_of_finding, report.findings),
        ]
        if own and len(reports) > 1:
            lines.append(f"{user_id}:")
        lines += own
    looked_at = sum(item.looked_at for item in reports.values())
    found = sum(len(item.twins) + len(item.findings) for item in reports.values())
    skills = "1 skill" if looked_at == 1 else f"{looked_at} skills"
    lines.append(f"{skills} looked at; {found or 'nothing'} found.")
    if without := sum(item.without_vector for item in reports.values()):
        lines.append(f"{without} without a vector were compared by name and words alone; see `search_index`.")
    return "\n".join(visible_line(line) for text in lines for line in text.splitlines())


def _of_twins(twins: Twins, organization: Organization) -> str:
    keep, drop = _named(twins.keep), _named(twins.drop)
    by = BY[twins.near.measure].format(twins.near.score)
    adds = [f"    + {line}" for line in twins.adds]
    what = "which adds:" if adds else "which adds nothing to it."
    return "\n".join(
        [f"near-duplicates ({by}): merge {drop} into {keep}, {what}", *adds, *_steps(twins, organization)]
    )


def _steps(twins: Twins, organization: Organization) -> list[str]:
    if twins.undecided:
        return ["    decide first:", *(f"    {line}" for line in _next(twins, organization))]
    return [f"    {line}" for line in _next(twins, organization)]


def _next(twins: Twins, organization: Organization) -> list[str]:
    """Return the commands that lead to one text: the merge, or a look at each proposal that is in its way."""
    of = f"--organization {organization.pk}"
    if twins.undecided:
        return [f"./run review show {pk} {of}" for pk in twins.undecided]
    # With four eyes somebody else decides than whoever proposes, so it has to say who that is.
    by = " --by USERNAME" if effective(organization).four_eyes else ""
    return [f"./run skills merge {twins.drop.skill_id} --into {twins.keep.skill_id} {of}{by}"]


def _of_finding(finding: Finding) -> str:
    return f"{finding.rule}: {_named(finding.view)}: {finding.message}"


def _named(view: SkillView) -> str:
    return f"{view.content.name} ({view.skill_id or view.revision_id})"
