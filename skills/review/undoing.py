"""A decision taken back, by the acts that every skill and proposal has: nothing is unwritten."""

from __future__ import annotations

from copy import copy

from django.contrib.auth.models import User
from django.db import transaction

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import RevisionAction, RevisionState, Skill, SkillRevision, SkillStatus
from skills.review.bases import has_moved
from skills.review.errors import NothingToDo
from skills.review.history import archive, move, restore, rollback
from skills.review.policy import require_decider
from skills.review.proposals import propose
from skills.review.refusals import moved_on, refuse_unfit_merge

REASON = "Taken back right after it was approved."


@transaction.atomic
def undo_approval(*, revision: SkillRevision, decided_by: User | None = None) -> Skill:
    """Have a skill say again what it said before `revision` was approved; return the skill.

    That is a roll back to the version before, and archiving a skill that there was not before. One that was
    taken into use again goes out of use, and one that was merged into this comes back. Sent again, it
    changes nothing more.

    Raises `NothingToDo` where `revision` is no version of a skill, and what the acts themselves raise:
    `BaseConflict` when the skill was published anew since, `MayNotDecide`, `UnverifiedSupport` when nothing
    verified stands behind the version before.
    """
    if revision.state != RevisionState.PUBLISHED or revision.skill is None:
        raise NothingToDo(f"{revision.pk} was never approved, or its skill is gone.")
    seen = copy(revision.skill)
    seen.current_revision_id = revision.pk  # what was approved is what the caller saw
    before = revision.base
    if before is None:
        archive(skill=seen, decided_by=decided_by, reason=REASON)
    elif before.content_hash != revision.content_hash:
        rollback(skill=seen, to=before, decided_by=decided_by, reason=REASON)
        seen = Skill.objects.with_owner_of(revision).get(pk=seen.pk)
    if before is not None and revision.action == RevisionAction.RESTORE:
        was_aside = before.action == RevisionAction.QUARANTINE
        move(skill=seen, act="quarantine" if was_aside else "archive", decided_by=decided_by, reason=REASON)
    _bring_back_source(revision, decided_by)
    return Skill.objects.with_owner_of(revision).get(pk=seen.pk)


@transaction.atomic
def undo_rejection(*, revision: SkillRevision, decided_by: User | None = None) -> SkillRevision:
    """Propose again what was rejected, with the same evidence; return the proposal, which waits.

    The rejection stays in the history, as the proposal that it was about does.

    Raises `NothingToDo` where `revision` was not rejected, `MayNotDecide`, `BaseConflict` when its skill was
    published anew since, or what it takes in was, and `ProposalConflict` when another proposal for the same
    is open, its name is taken by now, or some of its evidence is gone.
    """
    require_decider(organization=revision.organization, decided_by=decided_by)
    if revision.state != RevisionState.REJECTED:
        raise NothingToDo(f"{revision.pk} was not rejected.")
    refuse_unfit_merge(revision=revision, into=revision.skill)
    if has_moved(skill=revision.skill, base=revision.base):
        raise moved_on(revision=revision, skill=revision.skill)
    return propose(
        owner=Owner(organization=revision.organization, end_user=revision.end_user),
        content=Content.of(revision),
        skill=revision.skill,
        action=revision.action,
        author_kind=revision.author_kind,
        experiences=list(revision.experiences.all()),
        rationale=revision.rationale,
        run=revision.run,
        author=revision.author,
        source=revision.source,
        merged_from=revision.merged_from,
    )


def _bring_back_source(revision: SkillRevision, decided_by: User | None) -> None:
    """Restore the skill that a merge took in, where nothing happened to it since."""
    source = revision.merged_from.skill if revision.merged_from else None
    last = source.current_revision if source else None
    if source is None or last is None or source.status != SkillStatus.ARCHIVED:
        return
    if last.action == RevisionAction.ARCHIVE and last.base_id == revision.merged_from_id:
        restore(skill=source, decided_by=decided_by, reason=REASON)
