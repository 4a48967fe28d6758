"""The past of a skill brought back, and skills taken out of use and into it again.

Each act is a revision that is published at once, with a version, a decision and a reason: nothing that was
published is ever changed or lost, and an act is undone by the next one. The caller's `skill` says what they
read: where it was published anew since, the act is refused, unless that was this same act, sent twice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from skills.content import Content
from skills.models import (
    RevisionAction,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.errors import (
    BaseConflict,
    InvalidContent,
    NothingToDo,
    UnverifiedSupport,
)
from skills.review.policy import require_decider
from skills.review.reasons import require_reason
from skills.review.support import stands_on_nothing_verified
from skills.review.validation import content_errors
from skills.review.versions import publish_anew


@dataclass(frozen=True, kw_only=True)
class Move:
    """What takes a skill from one status to another."""

    action: RevisionAction
    before: frozenset[str]
    after: SkillStatus
    refusal: str


MOVES = {
    "archive": Move(
        action=RevisionAction.ARCHIVE,
        before=frozenset({SkillStatus.ACTIVE, SkillStatus.QUARANTINED}),
        after=SkillStatus.ARCHIVED,
        refusal="is archived already",
    ),
    "restore": Move(
        action=RevisionAction.RESTORE,
        before=frozenset({SkillStatus.ARCHIVED}),
        after=SkillStatus.ACTIVE,
        refusal="is not archived",
    ),
    "quarantine": Move(
        action=RevisionAction.QUARANTINE,
        before=frozenset({SkillStatus.ACTIVE}),
        after=SkillStatus.QUARANTINED,
        refusal="is not active",
    ),
    "release": Move(
        action=RevisionAction.RELEASE,
        before=frozenset({SkillStatus.QUARANTINED}),
        after=SkillStatus.ACTIVE,
        refusal="is not quarantined",
    ),
}
"""By the word that commands and pages use."""


@transaction.atomic
def rollback(
    *, skill: Skill, to: SkillRevision, decided_by: User | None = None, reason: str
) -> SkillRevision:
    """Publish the content of an earlier version anew, with the version raised; return the new revision.

    Whether the skill is found stays as it is. The experiences behind the earlier version stand behind the
    new one. Sent again, it returns what it made the first time.

    Raises `MayNotDecide`; `ReasonRequired`; `BaseConflict` when the skill was published anew since it was
    read; `NothingToDo` when `to` never was a version of it or says what it says today; `UnverifiedSupport`
    when nothing verified stands behind `to` any more; `InvalidContent` when its text breaks a rule of today
    or its name is taken.
    """
    require_decider(organization=skill.organization, decided_by=decided_by)
    require_reason(reason, "a roll back")
    locked = _lock(skill)
    if done := _done_before(skill, locked, RevisionAction.ROLLBACK, to.content_hash):
        return done
    _refuse_moved(skill, locked)
    target = SkillRevision.objects.with_owner_of(locked).filter(pk=to.pk, skill=locked).first()
    if target is None or target.state != RevisionState.PUBLISHED:
        raise NothingToDo(f"{to.pk} never was a version of “{locked.name}”.")
    content = Content.of(target)
    if content == Content.of(locked):
        raise NothingToDo(f"“{locked.name}” {locked.version} says what {target.version} said.")
    experiences = _verified(target, locked.name)
    if errors := content_errors(content):
        raise InvalidContent(errors)
    return publish_anew(locked, content, RevisionAction.ROLLBACK, target, experiences, decided_by, reason)


def archive(*, skill: Skill, decided_by: User | None = None, reason: str) -> SkillRevision:
    """Take a skill out of use; no search finds it from then on."""
    return move(skill=skill, act="archive", decided_by=decided_by, reason=reason)


def restore(*, skill: Skill, decided_by: User | None = None, reason: str) -> SkillRevision:
    """Take an archived skill into use again; the next search finds it."""
    return move(skill=skill, act="restore", decided_by=decided_by, reason=reason)


def quarantine(*, skill: Skill, decided_by: User | None = None, reason: str) -> SkillRevision:
    """Set a skill aside until somebody has looked into it; no search finds it meanwhile."""
    return move(skill=skill, act="quarantine", decided_by=decided_by, reason=reason)


def release(*, skill: Skill, decided_by: User | None = None, reason: str) -> SkillRevision:
    """Take a quarantined skill into use again; the next search finds it."""
    return move(skill=skill, act="release", decided_by=decided_by, reason=reason)


@transaction.atomic
def move(*, skill: Skill, act: str, decided_by: User | None = None, reason: str) -> SkillRevision:
    """Do one of `MOVES`: a revision with the same content under a new version; return it.

    Sent again, it returns what it made the first time.

    Raises `MayNotDecide`, `ReasonRequired`, `BaseConflict` when the skill was published anew since it was
    read, `NothingToDo` when its status is none to begin with, and, where it comes back, `UnverifiedSupport`
    when nothing verified stands behind it any more.
    """
    require_decider(organization=skill.organization, decided_by=decided_by)
    chosen = MOVES[act]
    require_reason(reason, f"to {act}")
    locked = _lock(skill)
    if done := _done_before(skill, locked, chosen.action):
        return done
    _refuse_moved(skill, locked)
    if locked.status not in chosen.before:
        raise NothingToDo(f"“{locked.name}” {chosen.refusal}.")
    current = locked.current_revision
    experiences: Collection[SkillExperience] = []
    if current is not None:
        is_back = chosen.after == SkillStatus.ACTIVE
        experiences = _verified(current, locked.name) if is_back else list(current.experiences.all())
    locked.status = chosen.after
    content = Content.of(locked)
    return publish_anew(locked, content, chosen.action, current, experiences, decided_by, reason)


def moves_from(status: str) -> list[str]:
    """Return the acts that a skill of that status may go through."""
    return [act for act, chosen in MOVES.items() if status in chosen.before]


def _lock(skill: Skill) -> Skill:
    return Skill.objects.with_owner_of(skill).select_for_update(no_key=True).get(pk=skill.pk)


def _refuse_moved(seen: Skill, locked: Skill) -> None:
    """Raise `BaseConflict` where the skill is not as the caller read it."""
    if locked.current_revision_id != seen.current_revision_id:
        raise BaseConflict(f"“{locked.name}” is at version {locked.version} by now; look at it again.")


def _done_before(
    seen: Skill, locked: Skill, action: RevisionAction, content_hash: str | None = None
) -> SkillRevision | None:
    """Return the skill's last revision where it is this very act on what the caller read."""
    last = locked.current_revision
    if last is None or last.base_id is None or last.base_id != seen.current_revision_id:
        return None
    is_same = last.action == action and content_hash in (None, last.content_hash)
    return last if is_same else None


def _verified(revision: SkillRevision, name: str) -> Collection[SkillExperience]:
    """Return what a revision rests on; it has to be enough to be published today."""
    experiences = list(revision.experiences.select_related("turn", "session"))
    if stands_on_nothing_verified(experiences):
        raise UnverifiedSupport(
            f"“{name}” {revision.version} rests on unverified or quarantined experiences alone."
        )
    return experiences
