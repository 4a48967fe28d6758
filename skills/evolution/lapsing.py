"""Proposals that no longer apply: closed before a run, so that it proposes on the texts of today."""

from __future__ import annotations

from typing import Protocol

from django.db import transaction

from mirix.tenants.owners import Owner
from skills.evolution.types import Refusal
from skills.models import AuthorKind, AutoDreamRun
from skills.review.publishing import lapse
from skills.selectors.proposals import outdated_proposals


class Claim(Protocol):
    """The right to write for one run; `skills.runs.RunClaim` is one."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        ...

    def hold(self) -> AutoDreamRun:
        """Lock the run until the transaction ends, or raise because it is somebody else's by now."""
        ...


def lapse_outdated(*, owner: Owner, claim: Claim) -> list[Refusal]:
    """Close what could not be approved as it is, give its experiences back, and return a note on each.

    Nobody's own words are dropped: what a person wrote or edited waits for a person.
    """
    notes = []
    for revision in outdated_proposals(owner=owner).exclude(author_kind=AuthorKind.HUMAN):
        with transaction.atomic():
            claim.hold()
            given_back = lapse(revision=revision)
        if given_back is not None:
            lessons = "1 experience is" if given_back == 1 else f"{given_back} experiences are"
            reason = f"{revision.pk} lapsed: its skill says something else by now. {lessons} pending again."
            notes.append(Refusal(reason=reason, name=revision.name))
    return notes
