"""`replay_intake`: store what accepted requests left behind, once the cause is gone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.management.base import CommandError, CommandParser

from conversations.intake import reason_of
from conversations.models import IntakeRecord, IntakeState
from conversations.operating import give_up, replay_request
from conversations.selectors import replayable_intake
from mirix.tenants.audit import Actor
from mirix.tenants.commands import OrganizationCommand
from mirix.text import visible_line


class Command(OrganizationCommand):
    """Replay an organization's failed, partly stored and waiting requests, or those named; or give these up.

    Exit code 1 where a request failed again, or one that is named has nothing to replay.
    """

    help = "Store the turns of accepted requests that failed, were partly stored, or still wait."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the requests."""
        super().add_arguments(parser)
        parser.add_argument("intake_ids", nargs="*", metavar="INTAKE_ID", help="omitted: all that can be")
        parser.add_argument(
            "--give-up",
            action="store_true",
            help="store nothing: drop for good what the named requests left behind",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Replay each in the order of acceptance and say what it is now."""
        records = replayable_intake(organization=self.organization(options))
        ids = list(records.values_list("pk", flat=True))
        if wanted := options["intake_ids"]:
            if unknown := sorted(set(wanted) - set(ids)):
                raise CommandError(f"nothing to replay in {', '.join(unknown)}")
            ids = [pk for pk in ids if pk in wanted]
        actor = Actor.operator()
        if options["give_up"]:
            self._give_up(list(records.filter(pk__in=wanted)), actor)
            return
        done = [
            replay_request(record=record, actor=actor)
            for pk in ids
            if (record := records.filter(pk=pk).first())
        ]
        states = Counter(record.state for record in done)
        self.answer(
            {
                "replayed": len(done),
                "states": dict(states),
                "records": [
                    {"id": record.pk, "state": record.state, "error": reason_of(record=record)}
                    for record in done
                ],
            },
            "\n".join([f"{len(done)} replayed: {_listing(states)}", *map(_line, done)]),
        )
        if states[IntakeState.FAILED]:
            raise CommandError(f"{states[IntakeState.FAILED]} failed again.")

    def _give_up(self, records: list[IntakeRecord], actor: Actor) -> None:
        if not records:
            raise CommandError("--give-up needs the ids of the requests to give up.")
        given_up = [record for record in records if give_up(record=record, actor=actor)]
        self.answer(
            {"given_up": [record.pk for record in given_up]},
            "\n".join([f"{len(given_up)} given up", *map(_line, given_up)]),
        )
        if waiting := sorted({record.pk for record in records} - {record.pk for record in given_up}):
            raise CommandError(f"not given up, for the worker has yet to store it: {', '.join(waiting)}")


def _listing(states: Counter[str]) -> str:
    return ", ".join(f"{count} {state}" for state, count in states.most_common()) or "nothing to do"


def _line(record: IntakeRecord) -> str:
    reason = f"  {visible_line(record.error)}" if record.error else ""
    return f"  {record.pk}  {record.state}{reason}"
