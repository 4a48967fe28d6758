"""The day's tokens: whether a session may still be sent to a model, and what was used when it was."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from mirix.tenants.models import Organization
from mirix.tenants.selectors import effective
from mirix.tenants.usage import count_tokens, tokens_used
from skills.asking import Later
from skills.lessons import Answer, Reading


class UnderWay:
    """What is taken to be used by calls whose answers are not there yet, of this process's runs."""

    def __init__(self) -> None:
        self._tokens: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reserve(self, organization: Organization, tokens: int, *, left: int) -> bool:
        """Set tokens aside if so many are left beside what is under way; return whether they were."""
        with self._lock:
            fits = self._tokens[organization.pk] + tokens <= left
            if fits:
                self._tokens[organization.pk] += tokens
            return fits

    def release(self, organization: Organization, tokens: int) -> None:
        """Give back what was set aside."""
        with self._lock:
            self._tokens[organization.pk] -= tokens


under_way = UnderWay()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a session is not sent to a model today."""

    reason: str
    is_of_session: bool
    """True where it needs more than a whole day's budget, so that others may still be sent."""


class Spending:
    """What one run spends of its organization's tokens."""

    def __init__(self, organization: Organization) -> None:
        self._organization = organization
        self._reserved: dict[str, int] = {}

    def refusal(self, session_pk: str, tokens: int) -> Refusal | None:
        """Return why a session that takes about so many tokens is not to be sent; None reserves them.

        Raises `Later` where there is room for it once others have taken less than they may.
        """
        budget = effective(self._organization).daily_token_budget
        if not budget or not tokens:
            return None
        if tokens > budget:
            reason = f"The session is too large for the organization's budget of {budget:,} tokens a day."
            return Refusal(reason=f"{reason} It takes about {tokens:,}.", is_of_session=True)
        left = budget - tokens_used(organization=self._organization)
        if tokens > left:
            reason = f"Of the organization's budget of {budget:,} tokens a day too few are left."
            return Refusal(reason=f"{reason} The next session takes about {tokens:,}.", is_of_session=False)
        if not under_way.reserve(self._organization, tokens, left=left):
            raise Later
        self._reserved[session_pk] = tokens
        return None

    def spent(self, reading: Reading, answer: Answer) -> None:
        """Count what a session's answer used, whatever becomes of it, in the place of what was reserved."""
        reply = answer.reply
        count_tokens(
            organization=self._organization,
            prompt=reply.prompt_tokens,
            completion=reply.completion_tokens,
            calls=reply.calls,
        )
        under_way.release(self._organization, self._reserved.pop(reading.session.pk, 0))

    def close(self) -> None:
        """Give back what is still reserved: nobody waits for those answers any more."""
        for session_pk in list(self._reserved):
            under_way.release(self._organization, self._reserved.pop(session_pk))
