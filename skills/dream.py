"""One run over an owner's sealed sessions: distil them, then evolve the owner's skills.

Distillers work concurrently and outside any transaction; each session is then stored in one transaction of
its own, under the run's fence. So a crash at any moment loses and doubles nothing: what is stored is marked
as learned from, and everything else is still there for the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.models import Count, F, Func, IntegerField, Q, Sum
from django.db.models.functions import Length
from django.utils import timezone

from conversations.models import ConversationMessage, Session, SessionTag
from conversations.pruning import DISTILLED_TURNS
from conversations.retention import prune
from conversations.sealing import seal_sessions
from conversations.selectors import distillable, distillable_sessions, sealable
from mirix.faults import words_of
from mirix.logs import about
from mirix.shapes import as_list, as_numbers
from mirix.tenants.owners import Owner
from skills.asking import Stopped
from skills.distillation import get_distiller
from skills.distilling import Distilling
from skills.evolution.curator import evolve
from skills.evolution.estimating import about_proposing
from skills.heartbeat import Heartbeat
from skills.lessons import SessionOutcome
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    RevisionState,
    RunState,
    SkillExperience,
    SkillRevision,
    Verdict,
)
from skills.runs import LostRun, RunClaim, tokens_of

logger = logging.getLogger(__name__)

DEFAULT_SESSIONS, MAX_SESSIONS = 5, 1_000
"""How many sessions a run distils when it is not told, also when it is told 0."""


class Watcher:
    """Who looks on while a run works; this one does nothing, a command's draws progress."""

    def planned(self, sessions: int) -> None:
        """`sessions` are about to be distilled."""

    def distilled(self, outcome: SessionOutcome) -> None:
        """One of them is done."""

    def evolving(self) -> None:
        """All of them are; the skills come next."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run would distil at this moment."""

    sessions: int
    turns: int
    characters: int
    tokens: int = 0
    """About how many it would take, prompts and answers; 0 where no model is asked."""
    proposer_tokens: int = 0
    """The same for evolving the skills after it."""


def plan(*, owner: Owner, last_n_sessions: int = 0, model: str = "", evolving: bool = True) -> Plan:
    """Return what a run of `owner` would read, by that model of the endpoint; writes and asks nothing.

    A run begins by sealing what is due, so sessions that are still open but complete count as well.
    """
    now = timezone.now()
    complete = sealable(now=now).filter(tag=SessionTag.TASK, last_seq__gt=F("distilled_through"))
    sessions = Session.objects.for_owner(owner).filter(
        Q(pk__in=distillable(now=now).for_owner(owner).values("pk"))
        | Q(pk__in=complete.for_owner(owner).values("pk"))
    )
    limit = last_n_sessions or DEFAULT_SESSIONS
    ids = list(sessions.order_by("first_turn_at", "pk").values_list("pk", flat=True)[:limit])
    turns = ConversationMessage.objects.for_owner(owner).filter(session__in=ids)
    sizes = list(
        turns.order_by()
        .values("session")
        .annotate(
            turns=Count("pk"),
            characters=Sum(Length("content")),
            octets=Sum(Func("content", function="octet_length", output_field=IntegerField())),
        )
    )
    distiller = get_distiller(model)
    return Plan(
        sessions=len(ids),
        turns=sum(size["turns"] for size in sizes),
        characters=sum(size["characters"] for size in sizes),
        tokens=sum(
            distiller.estimate(characters=size["characters"], octets=size["octets"], turns=size["turns"])
            for size in sizes
        ),
        proposer_tokens=(about_proposing(owner=owner, sessions=len(ids), model=model) if evolving else 0),
    )


def dream(
    *,
    claim: RunClaim,
    evolving: bool = True,
    watcher: Watcher | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> AutoDreamRun:
    """Do the work of a claimed run and return it finished.

    Not inside a transaction. Raises `LostRun` when another process took the run over, and `Stopped` after
    `should_stop` said so, the run left to whoever comes next. Anything else that goes wrong ends the run as
    `failed`, with the reason, or as `interrupted`, and is raised again.
    """
    watcher = watcher or Watcher()
    with about(run_id=claim.run_id), claim.beating() as heartbeat:
        try:
            _distil_sealed(claim, watcher, heartbeat, should_stop)
            refused: list[dict[str, Any]] = []
            if evolving:
                watcher.evolving()
                report = claim.lasting(
                    lambda: evolve(owner=claim.owner, claim=claim, should_stop=should_stop)
                )
                refused = [asdict(refusal) for refusal in report.refused]
            run = claim.lasting(lambda: _end_as_finished(claim, refused))
        except LostRun:
            raise
        except Stopped:
            claim.let_go()
            raise
        except BaseException as error:
            end_early(claim, error)
            raise
    _prune(claim.owner, should_stop)
    return run


def _prune(owner: Owner, should_stop: Callable[[], bool]) -> None:
    """Let distilled turns of the owner go whose time is over.

    The run is over by then; what fails here is left to the periodic prune.
    """
    try:
        prune(organization=owner.organization, owner=owner, kinds=[DISTILLED_TURNS], should_stop=should_stop)
    except DatabaseError:
        logger.exception("pruning after a run of %s failed", owner.end_user.pk)


def tally_of(*, owner: Owner, run_id: str) -> dict[str, Any]:
    """Count what a run has done so far, from the rows it wrote; they outlive a crash of the process."""
    verdicts = dict(
        DistillationAttempt.objects.for_owner(owner)
        .filter(run=run_id)
        .values_list("verdict")
        .annotate(n=Count("pk"))
        .order_by()
    )
    notes = AutoDreamRun.objects.for_owner(owner).values_list("notes", flat=True).get(pk=run_id)
    revisions = SkillRevision.objects.for_owner(owner).filter(run=run_id).order_by("created_at", "pk")
    published = revisions.filter(state=RevisionState.PUBLISHED).values_list("skill_id", "action")
    return {
        "sessions": {
            "distilled": verdicts.get(Verdict.OK, 0),
            "empty": verdicts.get(Verdict.EMPTY, 0),
            "retry": verdicts.get(Verdict.RETRY, 0),
            "dead": verdicts.get(Verdict.DEAD, 0),
            "deferred": sum(as_numbers(note).get("deferred", 0) for note in as_list(notes)),
        },
        "experiences": SkillExperience.objects.for_owner(owner).filter(attempt__run=run_id).count(),
        "created": [skill_id for skill_id, action in published if action == "create"],
        "edited": [skill_id for skill_id, action in published if action != "create"],
        "proposals": list(revisions.filter(state=RevisionState.PROPOSED).values_list("pk", flat=True)),
    }


def _distil_sealed(
    claim: RunClaim, watcher: Watcher, heartbeat: Heartbeat, should_stop: Callable[[], bool]
) -> None:
    """Distil the owner's sealed sessions, as many as the run may, oldest first."""
    run = AutoDreamRun.objects.get(pk=claim.run_id)
    limit = run.parameters.get("last_n_sessions") or DEFAULT_SESSIONS
    # What an earlier process of this run has dealt with counts.
    limit -= DistillationAttempt.objects.filter(run=run).values("session").distinct().count()
    seal_sessions(owner=claim.owner)
    chosen = [
        session.pk
        for session in distillable_sessions(owner=claim.owner, limit=max(0, limit), now=timezone.now())
    ]
    watcher.planned(len(chosen))
    Distilling(
        claim=claim,
        distiller=get_distiller(run.parameters.get("model", "")),
        tell=watcher.distilled,
        tend=heartbeat.tend,
        should_stop=should_stop,
    ).distil(chosen)


def _end_as_finished(claim: RunClaim, refused: list[dict[str, Any]]) -> AutoDreamRun:
    """Write what the run has done into its row."""
    notes = [*AutoDreamRun.objects.values_list("notes", flat=True).get(pk=claim.run_id), *refused]
    tally = tally_of(owner=claim.owner, run_id=claim.run_id)
    return claim.end(RunState.FINISHED, counts=tally, notes=notes, tokens=tokens_of(claim.run_id))


def end_early(claim: RunClaim, error: BaseException) -> None:
    """End a run because of an error, or of what stopped its process; say why in the log and in its row."""
    is_failure = isinstance(error, Exception) and not isinstance(error, Stopped)
    state = RunState.FAILED if is_failure else RunState.INTERRUPTED
    reason = f"{type(error).__name__}: {error}" if is_failure else "Interrupted."
    # A database that is gone is no fault of ours: a line is enough.
    is_fault = is_failure and not isinstance(error, OperationalError | InterfaceError)
    logger.log(
        logging.ERROR if is_failure else logging.INFO,
        "%s %s: %s",
        claim.run_id,
        state,
        words_of(error) if is_failure else reason,
        exc_info=error if is_fault else None,
    )
    try:
        claim.end(
            state,
            error=reason,
            counts=tally_of(owner=claim.owner, run_id=claim.run_id),
            tokens=tokens_of(claim.run_id),
        )
    except (DatabaseError, LostRun) as second:
        logger.error("%s counts as dead once its heartbeat is old: %s", claim.run_id, words_of(second))  # noqa: TRY400
