"""Review proposals on the command line: the same services as in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from mirix.commands import MAX_LISTED, whole
from mirix.tenants.models import Organization
from mirix.text import clean_text
from skills.management.deciding import DecidingCommand
from skills.management.review_text import detail, detail_page, queue_row, queue_table
from skills.models import SkillRevision
from skills.review.errors import ReviewError
from skills.review.publishing import approve, reject
from skills.selectors.proposals import QUEUE_ORDER, evidence_of, find_revision, proposals_of


class Command(DecidingCommand):
    """List what waits, show one proposal with its evidence, approve it or reject it."""

    help = "Review proposals: list what waits, show one, approve it, or reject it with a reason."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to do, and to which proposal."""
        super().add_arguments(parser)
        parser.add_argument("action", choices=["list", "show", "approve", "reject"])
        parser.add_argument(
            "revision", nargs="?", metavar="REVISION", help="rev-…, as `review list` shows it"
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
        if options["action"] == "list":
            if options["revision"]:
                raise CommandError("`review list` takes no proposal; `review show` shows one")
            self.list_queue(organization, options["limit"])
            return
        revision = self.revision(organization, options["revision"])
        by = self.member(organization, options["by"])
        try:
            match options["action"]:
                case "show":
                    self.show(revision)
                case "approve":
                    self.approve(revision, by, options["reason"])
                case "reject":
                    self.reject(revision, by, options["reason"])
        except ReviewError as error:
            raise CommandError(str(error)) from error

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

    def approve(self, revision: SkillRevision, by: User | None, reason: str) -> None:
        """Publish the proposal."""
        skill = approve(revision=revision, decided_by=by, reason=clean_text(reason))
        self.answer(
            {"id": revision.pk, "state": "published", "skill_id": skill.pk, "name": skill.name}
            | {"version": skill.version},
            f"Published {skill.name} {skill.version} ({skill.pk}).",
        )

    def reject(self, revision: SkillRevision, by: User | None, reason: str) -> None:
        """Turn the proposal down."""
        rejected = reject(revision=revision, decided_by=by, reason=clean_text(reason))
        self.answer(
            {"id": rejected.pk, "state": rejected.state, "name": rejected.name},
            f"Rejected {rejected.name} ({rejected.pk}).",
        )

    def revision(self, organization: Organization, revision_id: str | None) -> SkillRevision:
        """Return the revision that is meant."""
        if revision_id is None:
            raise CommandError("which proposal? name it: rev-…, as `review list` shows it")
        revision = find_revision(organization=organization, revision_id=clean_text(revision_id))
        if revision is None:
            raise CommandError(f"unknown proposal {revision_id!r} in organization {organization.name!r}")
        return revision
