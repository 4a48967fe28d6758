"""A skill that has lost support: set aside, with a proposal that asks whether it may come back."""

from __future__ import annotations

from collections.abc import Collection

from django.utils import timezone

from mirix.tenants.models import EndUser, Organization
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import (
    AuthorKind,
    ExperienceStatus,
    RevisionAction,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.proposals import propose
from skills.review.support import sessions_behind
from skills.review.versions import publish_anew

REASON = "Some of the sessions behind it were erased."


def back_to_review(*, skill: Skill, says: SkillRevision, support: Collection[SkillExperience]) -> None:
    """Have a locked skill say what `says` does, found by no search, and propose to use it again.

    One that is archived stays so, without a proposal. What waits for it is closed.
    """
    waiting = skill.revisions.filter(state=RevisionState.PROPOSED)
    waiting.update(state=RevisionState.SUPERSEDED, decided_at=timezone.now())
    was_in_use = skill.status == SkillStatus.ACTIVE
    if was_in_use:
        skill.status = SkillStatus.QUARANTINED
    made = publish_anew(skill, Content.of(says), RevisionAction.QUARANTINE, says, support, None, REASON)
    # No person did it.
    SkillRevision.objects.with_owner_of(skill).filter(pk=made.pk).update(author_kind=AuthorKind.OFFLINE)
    made.decisions.update(decided_by_kind=AuthorKind.OFFLINE)
    if not was_in_use:
        return
    sessions = sessions_behind(support)
    behind = f"{sessions} others still speak" if sessions != 1 else "1 other still speaks"
    propose(
        owner=Owner(organization=skill.organization, end_user=skill.end_user),
        content=Content.of(skill),
        skill=skill,
        action=RevisionAction.RESTORE,
        author_kind=AuthorKind.OFFLINE,
        experiences=support,
        rationale=f"{REASON} {behind} for it; until somebody has decided, no search finds it.",
    )


def give_back(
    *, organization: Organization, end_user: EndUser, experiences: Collection[SkillExperience]
) -> None:
    """Make those pending again that stand behind no version and no proposal any more."""
    rows = SkillExperience.objects.for_organization(organization).filter(end_user=end_user)
    counted = SkillRevision.objects.for_organization(organization).filter(
        state__in=(RevisionState.PUBLISHED, RevisionState.PROPOSED, RevisionState.REJECTED)
    )
    free = rows.filter(pk__in=[experience.pk for experience in experiences], status=ExperienceStatus.CONSUMED)
    free = free.exclude(pk__in=rows.filter(revisions__in=counted).values("pk"))
    free.update(status=ExperienceStatus.PENDING, considered_by="")
