"""The demonstration: sample sessions in an organization of its own, and a stand-in for its first reviews.

All of it can be interrupted and repeated: sessions are imported once, and the stand-in reviews either all
that it reviews or nothing, and only while nobody else has done anything in the organization.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

from django.db import transaction

from conversations.intake import import_session
from conversations.models import Session
from mirix.tenants.models import Client, Organization
from mirix.tenants.owners import Owner
from skills.dream import dream
from skills.models import (
    AuthorKind,
    AutoDreamRun,
    ReviewDecision,
    RunTrigger,
    Skill,
    SkillRevision,
)
from skills.review.publishing import approve
from skills.runs import claim_when_free, stalled_after
from skills.selectors.experiences import pending_experiences
from skills.selectors.proposals import QUEUE_ORDER, proposals_of

ORGANIZATION = "demo"
CLIENT = "quickstart"
USER_ID = "sample-agent"
LEFT_TO_THE_NEWCOMER = 3
MOST_RUNS = 6
REASON = "Approved by the quickstart, so that there is something to search for."
QUESTION = "the customer paid by card, how do I refund the order?"


def sample_sessions() -> Iterator[dict[str, Any]]:
    """Yield the sample sessions, each with `session_id` and `messages`."""
    with files("skills.samples").joinpath("sessions.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def load_samples(*, client: Client, owner: Owner) -> int:
    """Import the sample sessions as complete ones; return how many were new."""
    accepted = [import_session(client=client, owner=owner, **sample) for sample in sample_sessions()]
    return sum(not one.is_replay for one in accepted)


def learn(*, owner: Owner, tell: Callable[[AutoDreamRun], None] = lambda run: None) -> None:
    """Dream until nothing that is pending leads to a further proposal.

    Waits for a run that is going on, long enough to take over that of a process that was killed, and lets
    `tell` know. Raises `OwnerBusy` when it goes on for longer.
    """
    patience = 2 * stalled_after().total_seconds()
    for _ in range(MOST_RUNS):
        known = _proposal_count(owner)
        held = claim_when_free(
            owner=owner,
            trigger=RunTrigger.COMMAND,
            parameters={"last_n_sessions": 50},
            patience=patience,
            tell=tell,
        )
        dream(claim=held)
        if _proposal_count(owner) == known or not pending_experiences(owner=owner).exists():
            return


@transaction.atomic
def approve_most(*, owner: Owner) -> list[Skill]:
    """Publish what the samples taught, but for the last few proposals, and return the skills.

    Does nothing when anything in the organization has been decided, or is not of the demonstration: then
    it is somebody's, and a person decides.
    """
    organization = Organization.objects.select_for_update(no_key=True).get(pk=owner.organization.pk)
    if ReviewDecision.objects.filter(organization=organization).exists():
        return []
    samples = [sample["session_id"] for sample in sample_sessions()]
    sessions = Session.objects.for_organization(organization)
    if sessions.exclude(end_user=owner.end_user, session_id__in=samples).exists():
        return []
    waiting = proposals_of(organization=organization).order_by(*QUEUE_ORDER)
    return [
        approve(revision=proposal, kind=AuthorKind.DEMO, reason=REASON)
        for proposal in waiting[: max(0, len(waiting) - LEFT_TO_THE_NEWCOMER)]
        if not proposal.risk_flags
    ]


def _proposal_count(owner: Owner) -> int:
    return SkillRevision.objects.for_owner(owner).count()
