"""Why a proposal could not be written or decided. Every message is one line that a person can act on."""

from __future__ import annotations

from typing import Any


class ReviewError(Exception):
    """Base of all refusals of this package; nothing was written."""


class ProposalConflict(ReviewError):
    """The proposal was made against a state of things that is gone, or an open proposal holds its place."""


class AlreadyDecided(ReviewError):
    """The revision is no longer waiting: it was decided otherwise, or a later proposal took its place."""


class BaseConflict(ReviewError):
    """The skill was published anew after the proposal was made; approving would overwrite that."""


class EditConflict(ReviewError):
    """Somebody else was faster, or may have been: `theirs` is the revision of today.

    `base` is the one that the author began with, None where they do not say.
    """

    def __init__(self, message: str, *, base: Any, theirs: Any) -> None:
        self.base = base
        self.theirs = theirs
        super().__init__(message)


class ReasonRequired(ReviewError):
    """A decision against something without a reason teaches nobody anything."""


class NothingToDo(ReviewError):
    """What was asked for is so already, or there is nothing to do it with."""


class UnverifiedSupport(ReviewError):
    """Everything the revision rests on is unverified or quarantined."""


class AgainstPolicy(ReviewError):
    """The organization demands more before this may be published: more sessions, or somebody else."""


class MayNotDecide(ReviewError):
    """Whoever decides is nobody who does in this organization."""


class InvalidContent(ReviewError):
    """The content breaks a rule of the schema; `errors` holds the messages by field."""

    def __init__(self, errors: dict[str, list[str]]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{name}: {' '.join(messages)}" for name, messages in errors.items()))
