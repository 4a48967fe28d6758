"""Retention: texts go when their time is over, a batch at a time, and what was learned from them stays.

Each kind of text is a `Step` that says which limit holds for it, what is due, and how a batch of it goes.
The steps of this app are in `conversations.pruning`; apps upstairs add theirs, and an `Interest` in what they
point at, when they are ready: this floor knows nothing of them.

A batch is one short transaction, and rows that somebody else holds are passed over, so that intake never
waits for more than one batch, prunes at once share the work, and one that was killed is simply started again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Q, Subquery
from django.utils import timezone

from mirix.tenants.models import MAX_DAYS, Organization
from mirix.tenants.owners import Owner
from mirix.tenants.querysets import OwnedQuerySet
from mirix.tenants.selectors import effective

ROWS_A_BATCH = 500


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Whose rows are pruned, of one organization or one owner in it, and what time it is."""

    organization: Organization
    owner: Owner | None = None
    now: datetime

    def of(self, rows: OwnedQuerySet) -> OwnedQuerySet:
        """Return those of `rows` that are in it."""
        return rows.for_owner(self.owner) if self.owner else rows.for_organization(self.organization)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One kind of what goes. `limit` names the field of `Effective` with the days it is kept."""

    kind: str
    what: str
    """What it counts, in words."""
    limit: str
    due: Callable[[Scope, datetime], int]
    """How many are due that are older than the moment."""
    prune: Callable[[Scope, datetime], Iterator[int]]
    """Prunes those, and yields after each batch how many went with it."""


def row_step(
    *,
    kind: str,
    what: str,
    limit: str,
    rows: Callable[[Scope, datetime], OwnedQuerySet],
    drop: Callable[[list[str], Scope, datetime], object],
    order: str = "created_at",
    no_key: bool = False,
) -> Step:
    """Return a step that drops `rows`, up to `ROWS_A_BATCH` at a time, the first in `order` first.

    `drop` gets the keys of a batch, locked in its transaction, and leaves none of them due. `no_key` says
    that the rows themselves stay: others may refer to them meanwhile.
    """

    @transaction.atomic
    def batch(scope: Scope, before: datetime) -> int:
        due = rows(scope, before).select_for_update(skip_locked=True, of=("self",), no_key=no_key)
        pks = list(due.order_by(order).values_list("pk", flat=True)[:ROWS_A_BATCH])
        if pks:
            drop(pks, scope, before)
        return len(pks)

    def prune(scope: Scope, before: datetime) -> Iterator[int]:
        while count := batch(scope, before):
            yield count

    return Step(
        kind=kind,
        what=what,
        limit=limit,
        due=lambda scope, before: rows(scope, before).count(),
        prune=prune,
    )


@dataclass(frozen=True, kw_only=True)
class Interest:
    """What an app upstairs has in turns and sessions. The conditions are put into queries of theirs."""

    turn_waits: Callable[[], Exists]
    """True of a turn that has to stay for now, whatever its age."""
    claim_turns: Callable[[Collection[int]], Collection[int]]
    """Within the batch's transaction: hold off whoever could come to need these turns; return those that
    somebody needs at this moment."""
    release_turns: Callable[[Collection[int], datetime], None]
    """These turns go now: let go of them, and keep what has to outlive them."""
    session_is_needed: Callable[[], Exists]
    """True of a session whose row stays when its last turn is gone."""
    distilled_before: Callable[[datetime], Subquery]
    """The number of the last turn of a session that was distilled before that moment, or NULL."""


_steps: dict[str, Step] = {}
_interests: list[Interest] = []


def register_step(step: Step) -> None:
    """Have `step` done with every prune, after those registered before. For `AppConfig.ready`."""
    _steps[step.kind] = step


def register_interest(interest: Interest) -> None:
    """Have `interest` respected by every prune. For `AppConfig.ready`."""
    if interest not in _interests:
        _interests.append(interest)


def steps() -> list[Step]:
    """Return all that is registered, in order."""
    return list(_steps.values())


def interests() -> list[Interest]:
    """Return all that is registered, in order."""
    return list(_interests)


@dataclass(kw_only=True)
class Pruned:
    """What a prune did in one organization, or would do: how many went, by the kind of the step."""

    organization: Organization
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """How many rows that is."""
        return sum(self.counts.values())


def prune(
    *,
    organization: Organization,
    owner: Owner | None = None,
    kinds: Collection[str] | None = None,
    now: datetime | None = None,
    dry_run: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    watch: Callable[[str, int], object] = lambda kind, count: None,
) -> Pruned:
    """Prune what is due in an organization, or of one of its owners; return what went, every kind named.

    `kinds` limits it to some steps; `dry_run` only counts. Stops between two batches once `should_stop` says
    so. `watch` is called after each batch. Not inside a transaction: each batch is one.
    """
    scope = Scope(organization=organization, owner=owner, now=now or timezone.now())
    limits = effective(organization)
    result = Pruned(organization=organization)
    for step in steps():
        if kinds is not None and step.kind not in kinds:
            continue
        result.counts[step.kind] = 0
        days: int = getattr(limits, step.limit)
        if days <= 0:
            continue
        before = scope.now - timedelta(days=min(days, MAX_DAYS))
        for count in [step.due(scope, before)] if dry_run else step.prune(scope, before):
            result.counts[step.kind] += count
            watch(step.kind, count)
            if should_stop():
                return result
    return result


def prune_all(*, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Prune every organization by its own limits; return how many rows went."""
    total = 0
    for organization in Organization.objects.order_by("pk").iterator():
        if should_stop():
            break
        total += prune(organization=organization, should_stop=should_stop).total
    return total


def any_of(conditions: Collection[Exists]) -> Q:
    """Return what is true where one of the conditions is; of none it never is."""
    found = Q(pk__in=[])
    for condition in conditions:
        found |= Q(condition)
    return found
