"""What the commands `auto_dream` and `distill` share: a run in this process, with progress and its answer."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentTypeError
from types import TracebackType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mirix.commands import whole
from mirix.tenants.commands import OwnerCommand
from mirix.tenants.owners import Owner
from mirix.text import clean_text, visible_line
from skills.answers import dream_answer, dry_run_answer, session_results
from skills.distillation import get_distiller
from skills.dream import DEFAULT_SESSIONS, MAX_SESSIONS, Stopped, Watcher, dream, end_early, plan
from skills.lessons import SessionOutcome
from skills.management.stopping import Stopping
from skills.management.waiting import waiting_for
from skills.models import AutoDreamRun, RunTrigger
from skills.resting import retry_failed
from skills.runs import LostRun, OwnerBusy, claim_when_free

SIGNALLED_STATUS = 128
"""As a shell reports a signal: this and its number."""
INTERRUPTED = "Interrupted. What was distilled is kept; the same command goes on from there."
STOPPING = "Stopping once the sessions on their way are stored; again to stop at once."
DEFAULT_WAIT_SECONDS = 600
MAX_WAIT_SECONDS = 999_999
MAX_MODEL_CHARS = 128
WORDS = {"empty": "nothing worth keeping", "retry": "to be tried again", "dead": "given up"}


class DreamCommand(OwnerCommand):
    """A run over one owner's sealed sessions, in this process; no worker is needed."""

    evolving = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the run's parameters."""
        super().add_arguments(parser)
        parser.add_argument(
            "--last-n-sessions",
            type=whole(low=0, high=MAX_SESSIONS),
            default=0,
            metavar="N",
            help=f"at most N sealed sessions, oldest first; 0 is {DEFAULT_SESSIONS}",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be distilled")
        parser.add_argument(
            "--retry-failed",
            action="store_true",
            help="sessions that rest after a failure, or were given up, are due now",
        )
        parser.add_argument(
            "--wait",
            type=whole(low=0, high=MAX_WAIT_SECONDS),
            default=DEFAULT_WAIT_SECONDS,
            metavar="SECONDS",
            help=f"wait that long for a run that is going on (default: {DEFAULT_WAIT_SECONDS}); 0 refuses",
        )
        parser.add_argument(
            "--model",
            type=model_name,
            default="",
            metavar="NAME",
            help="another model of the same endpoint; of no use where sessions are distilled by rules",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, and say what came of it."""
        owner = self.owner(options)
        last_n_sessions = options["last_n_sessions"] or DEFAULT_SESSIONS
        if options["dry_run"]:
            try:
                planned = plan(
                    owner=owner,
                    last_n_sessions=last_n_sessions,
                    model=options["model"],
                    evolving=self.evolving,
                )
            except ImproperlyConfigured as error:
                raise CommandError(str(error)) from error
            answer = dry_run_answer(owner=owner, plan=planned, model=options["model"])
            self.answer(answer, answer["message"])
            return
        if options["retry_failed"]:
            retry_failed(owner=owner)
        parameters = {"last_n_sessions": last_n_sessions}
        if options["model"]:
            parameters["model"] = options["model"]
        if not self.evolving:
            parameters["evolving"] = False
        self.awaited: list[AutoDreamRun] = []
        run = self.run(owner, parameters, options["wait"])
        answer = dream_answer(run)
        results = session_results(run)
        lines = [_line(result) for result in results]
        for other in self.awaited:
            other.refresh_from_db()
            lines.append(f"{other.pk}, which went before: {dream_answer(other)['message']}")
        extra = {"results": results, "waited_for": [other.pk for other in self.awaited]}
        self.answer(answer | extra, "\n".join([*lines, answer["message"]]))

    def run(self, owner: Owner, parameters: dict[str, Any], patience: float) -> AutoDreamRun:
        """Claim and do the run, after one that is going on; what an operator can put right is one line."""
        try:
            get_distiller(parameters.get("model", ""))
            held = claim_when_free(
                owner=owner,
                trigger=RunTrigger.COMMAND,
                parameters=parameters,
                patience=patience,
                tell=self.wait_for,
            )
            with Stopping(lambda: self.stderr.write(STOPPING)) as stopping, ProgressBar() as progress:
                return dream(
                    claim=held, evolving=self.evolving, watcher=progress, should_stop=stopping.is_asked
                )
        except Stopped as stopped:
            end_early(held, stopped)
            raise CommandError(INTERRUPTED, returncode=SIGNALLED_STATUS + stopping.number) from stopped
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        except OwnerBusy as busy:
            raise CommandError(f"{owner} is busy: {busy.run.pk} ({busy.run.trigger}) is going on.") from busy
        except LostRun as lost:
            raise CommandError(f"This run was taken over: {lost} What it had stored is kept.") from lost
        except KeyboardInterrupt as interrupt:
            raise CommandError(INTERRUPTED, returncode=SIGNALLED_STATUS + signal.SIGINT) from interrupt

    def wait_for(self, run: AutoDreamRun) -> None:
        """Say which run is in the way; its sessions are not distilled twice."""
        self.awaited.append(run)
        self.say(waiting_for(run))


class ProgressBar(Watcher):
    """Progress on a terminal's standard error; silent elsewhere."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        self._task = self._progress.add_task("Looking for sealed sessions", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def planned(self, sessions: int) -> None:
        """Show how many there are."""
        self._progress.update(self._task, description="Distilling sessions", total=sessions)

    def distilled(self, outcome: SessionOutcome) -> None:
        """Move on by one."""
        self._progress.advance(self._task)

    def evolving(self) -> None:
        """Show the second part."""
        self._progress.update(self._task, description="Evolving skills")


def model_name(text: str) -> str:
    """Return the name of a model as an argument gives it."""
    if len(text) > MAX_MODEL_CHARS:
        raise ArgumentTypeError(f"a model's name has at most {MAX_MODEL_CHARS} characters")
    return clean_text(text).strip()


def _line(result: dict[str, Any]) -> str:
    number = result["experiences"]
    plural = "" if number == 1 else "s"
    what = WORDS.get(result["verdict"]) or f"{number} experience{plural}"
    reason = f" ({result['error']})" if result["error"] else ""
    return visible_line(f"{result['session_id']}: {what}{reason}")
