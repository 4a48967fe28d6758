"""Proposals made against a text that is gone: brought onto that of today before a run, else closed."""

from __future__ import annotations

from typing import Protocol

from django.db import transaction

from mirix.tenants.owners import Owner
from skills.evolution.types import Refusal
from skills.models import AuthorKind, AutoDreamRun, SkillRevision
from skills.review.errors import ReviewError
from skills.review.publishing import bring_up_to_date, lapse
from skills.selectors.proposals import outdated_proposals
from skills.superseding import revive_orphans


class Claim(Protocol):
    """The right to write for one run; `skills.runs.RunClaim` is one."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        ...

    @property
    def fence(self) -> int:
        """Which of the run's processes it is."""
        ...

    def hold(self) -> AutoDreamRun:
        """Lock the run until the transaction ends, or raise because it is somebody else's by now."""
        ...


def settle_outdated(*, owner: Owner, claim: Claim) -> list[Refusal]:
    """Bring each change that still fits onto what its skill says by now; return a note on each.

    What does not fit is closed, and its experiences are pending again, so that the run proposes anew.
    Nobody's own words are moved or dropped: what a person wrote or edited waits for a person.
    """
    with transaction.atomic():
        claim.hold()
        revive_orphans(owner=owner)
    notes = []
    for revision in outdated_proposals(owner=owner).exclude(author_kind=AuthorKind.HUMAN):
        with transaction.atomic():
            claim.hold()
            reason = _settled(revision)
        if reason:
            notes.append(Refusal(reason=reason, name=revision.name))
    return notes


def _settled(revision: SkillRevision) -> str:
    """Return what became of an outdated proposal; nothing where somebody else decided it meanwhile."""
    try:
        anew = bring_up_to_date(revision=revision)
    except ReviewError:  # it fits, and may not be proposed so
        anew = None
    if anew is not None:
        return f"{revision.pk} was brought onto what its skill says by now, as {anew.pk}."
    given_back = lapse(revision=revision)
    if given_back is None:
        return ""
    lessons = "1 experience is" if given_back == 1 else f"{given_back} experiences are"
    return f"{revision.pk} lapsed: its skill says something else by now. {lessons} pending again."
