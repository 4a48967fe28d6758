"""Why a person decided as they did: words that the next person can read."""

from __future__ import annotations

from mirix.text import is_blank
from skills.review.errors import ReasonRequired


def require_reason(reason: str, what: str) -> None:
    """Raise `ReasonRequired` where nothing of the reason for `what`, as in "a rejection", can be seen."""
    if is_blank(reason):
        raise ReasonRequired(f"Say why: {what} needs a reason.")
