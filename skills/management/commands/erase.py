"""Erase everything of an end user, of a client, or of one skill."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from mirix.tenants import erasure
from mirix.tenants.audit import Actor
from mirix.tenants.commands import OrganizationCommand
from mirix.tenants.models import Client, ErasureReceipt, Organization
from mirix.text import clean_text, visible_line
from skills.erasure.single import erase_skill
from skills.models import Skill


class Command(OrganizationCommand):
    """`erase --organization NAME (--user USER_ID | --client NAME | --skill ID)`."""

    help = "Erase everything of an end user, of a client, or of one skill. It cannot be undone."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what to erase."""
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--user", metavar="USER_ID", help="the end user's own id, or mirix's")
        what.add_argument("--client", metavar="NAME", help="name or id of a client; it stays, with its keys")
        what.add_argument("--skill", metavar="ID", help="id of a skill")
        parser.add_argument("--dry-run", action="store_true", help="count what would go, and change nothing")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, erase and report."""
        organization, dry_run = self.organization(options), options["dry_run"]
        name, erase = self._chosen(organization, options)
        if not dry_run and not options["yes"]:
            self._ask(name)
        try:
            receipt = erase(dry_run)
        except erasure.NothingThere as error:
            raise CommandError(str(error)) from error
        if not dry_run:
            tables = [apps.get_model(label)._meta.db_table for label in receipt.counts]
            if not erasure.finish(tables=tables):
                self.say("Redis is out of reach; the worker clears what search keeps there.")
        self._report(receipt, dry_run)

    def _chosen(
        self, organization: Organization, options: dict[str, Any]
    ) -> tuple[str, Callable[[bool], ErasureReceipt]]:
        """Return what the operator has to type, and what erases it."""
        actor = Actor.operator()
        if options["user"] is not None:
            found = list(erasure.find_end_users(organization=organization, name=options["user"]))
            if len(found) != 1:
                kind = "unknown user" if not found else "two end users are meant by"
                raise CommandError(f"{kind} {options['user']!r} in organization {organization.name!r}")
            end_user = found[0]
            return end_user.user_id, lambda dry: erasure.erase_end_user(
                end_user=end_user, actor=actor, dry_run=dry
            )
        if options["client"] is not None:
            named = clean_text(options["client"])
            clients = Client.objects.for_organization(organization)
            client = clients.filter(Q(pk=named) | Q(name=named)).first()
            if client is None:
                raise CommandError(
                    f"unknown client {options['client']!r} in organization {organization.name!r}"
                )
            return client.name, lambda dry: erasure.erase_client(client=client, actor=actor, dry_run=dry)
        skills = Skill.objects.for_organization(organization).select_related("organization")
        skill = skills.filter(pk=clean_text(options["skill"])).first()
        if skill is None:
            raise CommandError(f"unknown skill {options['skill']!r} in organization {organization.name!r}")
        return skill.name, lambda dry: erase_skill(skill=skill, actor=actor, dry_run=dry)

    def _ask(self, name: str) -> None:
        """Have the operator type the name; without a terminal nobody could, and `--yes` says so."""
        if not sys.stdin.isatty():
            raise CommandError("nobody is there to confirm; say --yes, or --dry-run to see what would go")
        self.stderr.write(f"This erases {visible_line(name)} for good. Type the name to go on: ", ending="")
        if sys.stdin.readline().strip() != name.strip():
            raise CommandError("that is another name; nothing was erased")

    def _report(self, receipt: ErasureReceipt, dry_run: bool) -> None:
        data = {
            "receipt": None if dry_run else receipt.pk,
            "dry_run": dry_run,
            "kind": str(receipt.kind),
            "subject_id": receipt.subject_id,
            "subject_hash": receipt.subject_hash,
            "total": receipt.total,
            "counts": receipt.counts,
            "digests": receipt.digests,
        }
        lines = [f"  {number:>8,}  {label}" for label, number in receipt.counts.items()]
        rows = "1 row" if receipt.total == 1 else f"{receipt.total:,} rows"
        head = f"{rows} would go." if dry_run else f"{rows} erased; {receipt.pk} is the receipt."
        self.answer(data, "\n".join([head, *lines]))
