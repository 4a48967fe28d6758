"""Where a run stands, also while it is going on: from the rows that it wrote, so that any host may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Sum
from django.utils import timezone

from conversations.selectors import distillable_sessions
from mirix.shapes import as_dict, as_numbers
from mirix.tenants.owners import Owner
from skills.dream import DEFAULT_SESSIONS, tally_of
from skills.models import AutoDreamRun, DistillationAttempt, RunState


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a run has done so far, and how much it has before it."""

    counts: dict[str, Any]
    tokens: int
    read: int
    """Sessions that it has dealt with."""
    left: int
    """Sessions that wait for it at this moment, as many as it may still take; 0 once it is over."""


def is_open(run: AutoDreamRun) -> bool:
    """Return whether a run has not ended yet."""
    return run.state in {RunState.QUEUED, RunState.RUNNING}


def progress_of(run: AutoDreamRun) -> Progress:
    """Return where a run stands; of one that is over, as its row says, without another query."""
    if not is_open(run):
        counts = as_dict(run.counts)
        sessions = as_numbers(counts.get("sessions"))
        read = sum(number for name, number in sessions.items() if name != "deferred")
        return Progress(counts=counts, tokens=run.tokens, read=read, left=0)
    owner = Owner(organization=run.organization, end_user=run.end_user)
    done = (
        DistillationAttempt.objects.for_owner(owner)
        .filter(run=run)
        .aggregate(
            sessions=Count("session", distinct=True), tokens=Sum(F("prompt_tokens") + F("completion_tokens"))
        )
    )
    limit = (as_numbers(run.parameters).get("last_n_sessions") or DEFAULT_SESSIONS) - done["sessions"]
    waiting = distillable_sessions(owner=owner, limit=max(0, limit), now=timezone.now())
    return Progress(
        counts=tally_of(owner=owner, run_id=run.pk),
        tokens=done["tokens"] or 0,
        read=done["sessions"],
        left=waiting.count(),
    )
