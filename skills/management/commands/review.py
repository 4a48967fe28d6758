"""Review proposals on the command line: the same services as in the admin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from mirix.commands import MAX_LISTED, whole
from mirix.tenants.models import Organization
from mirix.text import clean_text, visible_line
from skills.management.deciding import DecidingCommand
from skills.management.review_text import detail, detail_page, queue_row, queue_table
from skills.models import RevisionState, SkillRevision
from skills.review.errors import ReviewError
from skills.review.publishing import approve, reject
from skills.selectors.proposals import QUEUE_ORDER, evidence_of, find_revision, proposals_of

Decide = Callable[[SkillRevision], tuple[dict[str, Any], str]]


class Command(DecidingCommand):
    """List what waits, show one proposal with its evidence, approve or reject one or many."""

    help = "Review proposals: list what waits, show one, approve some, or reject them with a reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do, and to which proposal."""
        super().add_arguments(parser)
        parser.add_argument("action", choices=["list", "show", "approve", "reject"])
        parser.add_argument(
            "revisions",
            nargs="*",
            metavar="REVISION",
            help="rev-…, as `review list` shows it; of approve and reject as many as you like",
        )
        parser.add_argument("--reason", default="", help="why; a rejection needs it")
        parser.add_argument("--by", metavar="USERNAME", help="the member who decides")
        parser.add_argument(
            "--limit",
            type=whole(low=1, high=MAX_LISTED),
            default=50,
            metavar="N",
            help="list at most N (default: 50)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what was asked; whatever review refuses is one line."""
        organization = self.organization(options)
        action, names = options["action"], options["revisions"]
        if action == "list":
            if names:
                raise CommandError("`review list` takes no proposal; `review show` shows one")
            self.list_queue(organization, options["limit"])
            return
        if not names:
            raise CommandError("which proposal? name it: rev-…, as `review list` shows it")
        if action == "show":
            if len(names) > 1:
                raise CommandError("`review show` shows one proposal")
            self.show(self.revision(organization, names[0]))
            return
        by, reason = self.member(organization, options["by"]), clean_text(options["reason"])
        decide = partial(_DECIDE[action], decided_by=by, reason=reason)
        if len(names) == 1:
            self.decide_one(self.revision(organization, names[0]), decide)
        else:
            self.decide_each(organization, list(dict.fromkeys(names)), decide)

    def list_queue(self, organization: Organization, limit: int) -> None:
        """Write the waiting proposals, the most important first."""
        waiting = proposals_of(organization=organization)
        rows = [queue_row(revision) for revision in waiting.order_by(*QUEUE_ORDER)[:limit]]
        if not rows:
            self.answer(rows, f"Nothing waits in {organization.name}.")
            return
        text = queue_table(rows, colours=self.stdout.isatty())
        more = waiting.count() - len(rows)
        self.answer(rows, f"{text}\n… and {more} more" if more else text, is_styled=True)

    def show(self, revision: SkillRevision) -> None:
        """Write what changes and the evidence."""
        evidence = list(evidence_of(revision=revision))
        page = detail_page(revision, evidence, colours=self.stdout.isatty())
        self.answer(detail(revision, evidence), page, is_styled=True)

    def decide_one(self, revision: SkillRevision, decide: Decide) -> None:
        """Decide about one proposal; whatever is refused is the command's error."""
        try:
            row, done = decide(revision)
        except ReviewError as error:
            raise CommandError(str(error)) from error
        self.answer(row, done)

    def decide_each(self, organization: Organization, names: list[str], decide: Decide) -> None:
        """Decide about each proposal for itself, in the order given; say of each what came of it.

        What is refused stops none of the others, and makes the command fail.
        """
        rows: list[dict[str, Any]] = []
        lines: list[str] = []
        for name in names:
            try:
                row, line = decide(self.revision(organization, name))
            except (CommandError, ReviewError) as error:
                row, line = {"id": name, "error": str(error)}, f"{name}: {error}"
            rows.append(row)
            lines.append(line)
        self.answer(rows, "\n".join(map(visible_line, lines)))
        if refused := sum("error" in row for row in rows):
            raise CommandError(f"{refused} of {len(rows)} refused")

    def revision(self, organization: Organization, revision_id: str) -> SkillRevision:
        """Return the revision that is meant."""
        revision = find_revision(organization=organization, revision_id=clean_text(revision_id))
        if revision is None:
            raise CommandError(f"unknown proposal {revision_id!r} in organization {organization.name!r}")
        return revision


def _approve(revision: SkillRevision, *, decided_by: User | None, reason: str) -> tuple[dict[str, Any], str]:
    """Publish the proposal; return what came of it, as data and as a line."""
    skill = approve(revision=revision, decided_by=decided_by, reason=reason)
    row = {"id": revision.pk, "state": "published", "skill_id": skill.pk, "name": skill.name}
    return row | {"version": skill.version}, f"Published {skill.name} {skill.version} ({skill.pk})."


def _reject(revision: SkillRevision, *, decided_by: User | None, reason: str) -> tuple[dict[str, Any], str]:
    """Turn the proposal down; return what came of it, as data and as a line."""
    found = reject(revision=revision, decided_by=decided_by, reason=reason)
    row = {"id": found.pk, "state": found.state, "name": found.name}
    if found.state == RevisionState.REJECTED:
        return row, f"Rejected {found.name} ({found.pk})."
    return row, f"{found.name} ({found.pk}) lapsed: its skill says something else by now."


_DECIDE = {"approve": _approve, "reject": _reject}
