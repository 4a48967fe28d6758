"""The day's tokens: whether a model may still be asked, and what was used when it was.

What is taken to be used by calls whose answers are not there yet stands in the rows of their runs, and counts
for as long as these live: so it is known to every process of every host, and nothing of it is left behind by
one that died. Who sets tokens aside holds the day's row, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from django.db import transaction
from django.db.models import F, Sum
from django.db.models.functions import Greatest

from mirix.tenants.models import Organization
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import effective
from mirix.tenants.usage import count_tokens, hold_day
from skills.asking import Later
from skills.lessons import Answer, Reading
from skills.models import AutoDreamRun, RunState
from skills.runs import LostRun, RunClaim, stale


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


class NoRoom(Exception):
    """So many tokens cannot be set aside; `others_wait` where answers on their way may leave some."""

    def __init__(self, *, budget: int, others_wait: bool) -> None:
        super().__init__("The day's tokens do not suffice.")
        self.budget = budget
        self.others_wait = others_wait


@transaction.atomic
def reserve(*, organization: Organization, claim: Claim, tokens: int) -> int:
    """Set tokens aside for a call of the run; return how many were, 0 where there is no budget.

    Raises `NoRoom`, and `LostRun`.
    """
    budget = effective(organization).daily_token_budget
    if not budget or not tokens:
        return 0
    left = budget - hold_day(organization=organization).tokens
    if tokens > left:
        raise NoRoom(budget=budget, others_wait=False)
    if tokens > left - reserved(organization=organization):
        raise NoRoom(budget=budget, others_wait=True)
    if not _row(claim).update(reserved_tokens=F("reserved_tokens") + tokens):
        raise LostRun(f"{claim.run_id} was taken over or ended elsewhere.")
    return tokens


def release(*, claim: Claim, tokens: int) -> None:
    """Give back what was set aside."""
    if tokens:
        _row(claim).update(reserved_tokens=Greatest(F("reserved_tokens") - tokens, 0))


def reserved(*, organization: Organization) -> int:
    """Return how many tokens are set aside by runs that live."""
    living = AutoDreamRun.objects.for_organization(organization).filter(~stale(), state=RunState.RUNNING)
    return int(living.aggregate(tokens=Sum("reserved_tokens", default=0))["tokens"])


@transaction.atomic
def spend(
    *, organization: Organization, claim: Claim, reserved: int, prompt: int, completion: int, calls: int
) -> None:
    """Count what a call used in the place of what was set aside for it, whoever has the run by now."""
    count_tokens(organization=organization, prompt=prompt, completion=completion, calls=calls)
    release(claim=claim, tokens=reserved)


def _row(claim: Claim) -> Any:
    return AutoDreamRun.objects.filter(pk=claim.run_id, state=RunState.RUNNING, fence=claim.fence)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a session is not sent to a model today."""

    reason: str
    is_of_session: bool
    """True where it needs more than a whole day's budget, so that others may still be sent."""


class Spending:
    """What one run spends of its organization's tokens on sessions."""

    def __init__(self, claim: RunClaim) -> None:
        self._claim = claim
        self._reserved: dict[str, int] = {}

    @property
    def _owner(self) -> Owner:
        return self._claim.owner

    def refusal(self, session_pk: str, tokens: int) -> Refusal | None:
        """Return why a session that takes about so many tokens is not to be sent; None reserves them.

        Raises `Later` where there is room for it once others have taken less than they may, and `LostRun`.
        """
        try:
            kept = reserve(organization=self._owner.organization, claim=self._claim, tokens=tokens)
        except NoRoom as none:
            if none.others_wait:
                raise Later from none
            budget = f"the organization's budget of {none.budget:,} tokens a day"
            if tokens > none.budget:
                reason = f"The session is too large for {budget}. It takes about {tokens:,}."
                return Refusal(reason=reason, is_of_session=True)
            reason = f"Of {budget} too few are left. The next session takes about {tokens:,}."
            return Refusal(reason=reason, is_of_session=False)
        self._reserved[session_pk] = kept
        return None

    def spent(self, reading: Reading, answer: Answer) -> None:
        """Count what a session's answer used, whatever becomes of it, in the place of what was reserved."""
        reply = answer.reply
        spend(
            organization=self._owner.organization,
            claim=self._claim,
            reserved=self._reserved.get(reading.session.pk, 0),
            prompt=reply.prompt_tokens,
            completion=reply.completion_tokens,
            calls=reply.calls,
        )
        self._reserved.pop(reading.session.pk, None)

    def close(self) -> None:
        """Give back what is still reserved: nobody waits for those answers any more."""
        left, self._reserved = sum(self._reserved.values()), {}
        release(claim=self._claim, tokens=left)
