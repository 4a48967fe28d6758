"""The queue of proposals: which ones a user sees, in what order, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest

from mirix.admin_base import organization_ids, roles
from mirix.tenants.models import Organization, Role
from mirix.tenants.selectors import deciding_in, deciding_roles
from mirix.text import clean_text
from skills.models import RevisionState, Skill, SkillRevision
from skills.selectors.proposals import QUEUE_ORDER

MAX_QUEUE = 500
"""How far the queue is walked for the place of a proposal in it."""


def may_decide(request: HttpRequest, row: Skill | SkillRevision) -> bool:
    """Return whether the user may decide about this revision or skill."""
    allowed = deciding_ids(request)
    return allowed is None or row.organization_id in allowed


def deciding_ids(request: HttpRequest) -> list[str] | None:
    """Return the ids of the organizations in which the user decides; None stands for all.

    For reviewers that depends on what their organizations chose: one query per request.
    """
    if getattr(request.user, "is_superuser", False):
        return None
    kept: list[str] | None = request.__dict__.get("_mirix_deciding")
    if kept is None:
        kept = request.__dict__["_mirix_deciding"] = deciding_in(roles(request))
    return kept


def deciders_of(organization: Organization) -> str:
    """Return who decides in an organization, in words that begin a sentence; one query."""
    roles = deciding_roles(organization=organization)
    return "Reviewers and administrators" if Role.REVIEWER in roles else "Administrators"


def waiting(request: HttpRequest) -> QuerySet:
    """Return the proposals that wait in the user's organizations, without order."""
    revisions = SkillRevision.objects.for_organizations(organization_ids(request))
    return revisions.filter(state=RevisionState.PROPOSED)


def waiting_count(request: HttpRequest, at_most: int) -> int:
    """Return how many proposals wait, counted up to `at_most`; once per request."""
    kept = request.__dict__.get("_mirix_waiting")
    if kept is None:
        kept = request.__dict__["_mirix_waiting"] = waiting(request).values("pk")[:at_most].count()
    return kept


FILTERS = "_changelist_filters"
"""The parameter in which Django's pages carry what their list was filtered by."""


def carried(request: HttpRequest) -> str:
    """Return the end of an address that keeps the filters which the request's own carries; "" without any."""
    filters = clean_text(request.GET.get(FILTERS, ""))
    return f"?{urlencode({FILTERS: filters})}" if filters else ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a proposal stands in the queue; `number` is None when it is not, or not any more, in it."""

    number: int | None
    total: int
    previous: str | None
    next: str | None


def place_of(request: HttpRequest, revision: SkillRevision, queue: QuerySet | None = None) -> Place:
    """Return the place of a proposal in the user's queue, and the ids of its neighbours.

    `queue` is what there is of it, in order, where the user narrowed it down.

    After the last comes the first; a revision that was decided points at the head of the queue.
    """
    if queue is None:
        queue = waiting(request).order_by(*QUEUE_ORDER)
    ids = list(queue.values_list("pk", flat=True)[:MAX_QUEUE])
    if revision.pk not in ids:
        return Place(number=None, total=len(ids), previous=None, next=ids[0] if ids else None)
    here = ids.index(revision.pk)
    alone = len(ids) == 1
    return Place(
        number=here + 1,
        total=len(ids),
        previous=None if alone else ids[here - 1],
        next=None if alone else ids[(here + 1) % len(ids)],
    )
