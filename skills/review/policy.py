"""What an organization demands before anything is published, whoever publishes it."""

from __future__ import annotations

from django.contrib.auth.models import User

from mirix.tenants.models import Organization
from mirix.tenants.selectors import Effective, effective, may_review
from skills.models import AuthorKind, SkillRevision
from skills.review.errors import AgainstPolicy, MayNotDecide
from skills.review.support import sessions_behind


def require_decider(*, organization: Organization, decided_by: User | None) -> None:
    """Raise `MayNotDecide` for a person who does not decide in the organization.

    Nobody stands for whoever runs the installation, at the command line, and for the policy itself.
    """
    if decided_by is not None and not may_review(user=decided_by, organization=organization):
        raise MayNotDecide(f"{decided_by.get_username()} does not decide in {organization.name}.")


def require_policy(*, revision: SkillRevision, decided_by: User | None) -> None:
    """Raise `AgainstPolicy` where the organization wants more sessions, or another pair of eyes."""
    sessions = sessions_behind(revision.experiences.select_related("session"))
    hold_against_policy(
        revision=revision,
        decided_by=decided_by,
        chosen=effective(revision.organization),
        sessions=sessions,
    )


def hold_against_policy(
    *, revision: SkillRevision, decided_by: User | None, chosen: Effective, sessions: int
) -> None:
    """Raise `AgainstPolicy` as `require_policy` does, of settings and a number that are read already."""
    if 0 < sessions < chosen.min_supporting_sessions:
        raise AgainstPolicy(
            f"{revision.pk} is supported by {_sessions(sessions)}; "
            f"{revision.organization.name} wants {chosen.min_supporting_sessions}."
        )
    if chosen.four_eyes and revision.author_kind == AuthorKind.HUMAN:
        if decided_by is None:
            raise AgainstPolicy(f"{revision.pk} was written by a person: say who decides.")
        if decided_by.pk == revision.author_id:
            raise AgainstPolicy(f"{revision.pk} is your own text: somebody else has to decide.")


def wants_other_eyes(revision: SkillRevision) -> bool:
    """Return whether somebody else than its author has to decide about a person's text."""
    return revision.author_kind == AuthorKind.HUMAN and effective(revision.organization).four_eyes


def _sessions(number: int) -> str:
    return "1 session" if number == 1 else f"{number} sessions"
