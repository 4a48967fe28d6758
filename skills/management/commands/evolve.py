"""The second half of a dream: pending experiences become proposals."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser

from mirix.tenants.commands import OwnerCommand
from mirix.text import visible_line
from skills.asking import Stopped
from skills.dream import end_early, tally_of
from skills.evolution.curator import evolve
from skills.evolution.types import EvolutionReport
from skills.management.dreaming import SIGNALLED_STATUS, model_name
from skills.management.stopping import Stopping
from skills.models import RunState, RunTrigger, SkillRevision
from skills.runs import LostRun, OwnerBusy, RunClaim, claim, tokens_of

INTERRUPTED = "Interrupted. What was written is kept; the same command goes on from there."
STOPPING = "Stopping once the topic on its way is written; again to stop at once."


class Command(OwnerCommand):
    """Evolve one owner's skills from what is pending, without distilling."""

    help = "Turn a user's pending experiences into proposals, without distilling sessions."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the model."""
        super().add_arguments(parser)
        parser.add_argument(
            "--model",
            type=model_name,
            default="",
            metavar="NAME",
            help="another model of the same endpoint; of no use where rules propose",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Claim a run, evolve, and say what was proposed, published and refused."""
        owner = self.owner(options)
        try:
            parameters = {"only": "evolve"} | ({"model": options["model"]} if options["model"] else {})
            held = claim(owner=owner, trigger=RunTrigger.COMMAND, parameters=parameters)
            with Stopping(lambda: self.stderr.write(STOPPING)) as stopping:
                report = self._evolve(held, stopping.is_asked)
        except (Stopped, KeyboardInterrupt) as stopped:
            status = SIGNALLED_STATUS + (stopping.number or signal.SIGINT)
            raise CommandError(INTERRUPTED, returncode=status) from stopped
        except OwnerBusy as busy:
            raise CommandError(f"{owner} is busy: {busy.run.pk} ({busy.run.trigger}) is going on.") from busy
        except LostRun as lost:
            raise CommandError(f"This run was taken over: {lost} What it had written is kept.") from lost
        self.answer({"run_id": held.run_id} | asdict(report), self._text(report))

    def _evolve(self, held: RunClaim, should_stop: Callable[[], bool]) -> EvolutionReport:
        """Do the run and end it, whatever comes of it."""
        try:
            with held.beating():
                report = evolve(owner=held.owner, claim=held, should_stop=should_stop)
        except LostRun:
            raise
        except BaseException as error:
            end_early(held, error)
            raise
        notes = [asdict(refusal) for refusal in report.refused]
        held.end(
            RunState.FINISHED,
            counts=tally_of(owner=held.owner, run_id=held.run_id),
            notes=notes,
            tokens=tokens_of(held.run_id),
        )
        return report

    def _text(self, report: EvolutionReport) -> str:
        """Return the report for a person: a line per revision and per refusal, then a summary."""
        names = dict(
            SkillRevision.objects.filter(pk__in=[*report.proposed, *report.published]).values_list(
                "pk", "name"
            )
        )
        lines = [f"proposed   {names[pk]} ({pk})" for pk in report.proposed]
        lines += [f"published  {names[pk]} ({pk})" for pk in report.published]
        lines += [f"refused    {refusal.name}: {refusal.reason}" for refusal in report.refused]
        used = len(report.consumed)
        lines.append(f"{used} experience{'' if used == 1 else 's'} used; budget {report.budget}.")
        return "\n".join(map(visible_line, lines))
