"""A skill that has lost support or text: set aside, with a proposal that asks whether it may come back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from django.utils import timezone

from mirix.tenants.models import EndUser, Organization
from mirix.tenants.owners import Owner
from skills.content import MAX_NAME_CHARS, Content
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
from skills.review.validation import content_errors
from skills.review.versions import publish_anew


def back_to_review(
    *,
    skill: Skill,
    says: SkillRevision,
    content: Content,
    support: Collection[SkillExperience],
    reason: str,
    left: str,
) -> None:
    """Have a locked skill say `content`, found by no search, and propose to use it again.

    `says` is the version whose text that is, or was made of. `reason` is a sentence that says what happened,
    `left` one without its end that says what still speaks for it. One that is archived stays so, without a
    proposal, and so does one whose text breaks a rule of today, set aside. What waits for it is closed.
    """
    waiting = skill.revisions.filter(state=RevisionState.PROPOSED)
    waiting.update(state=RevisionState.SUPERSEDED, decided_at=timezone.now())
    was_in_use = skill.status == SkillStatus.ACTIVE
    if was_in_use:
        skill.status = SkillStatus.QUARANTINED
    content = replace(content, name=_free_name(skill, content.name))
    made = publish_anew(skill, content, RevisionAction.QUARANTINE, says, support, None, reason)
    # No person did it.
    SkillRevision.objects.with_owner_of(skill).filter(pk=made.pk).update(author_kind=AuthorKind.OFFLINE)
    made.decisions.update(decided_by_kind=AuthorKind.OFFLINE)
    if not was_in_use or content_errors(content):
        return
    propose(
        owner=Owner(organization=skill.organization, end_user=skill.end_user),
        content=Content.of(skill),
        skill=skill,
        action=RevisionAction.RESTORE,
        author_kind=AuthorKind.OFFLINE,
        experiences=support,
        rationale=f"{reason} {left}; until somebody has decided, no search finds it.",
    )


def _free_name(skill: Skill, name: str) -> str:
    """Return a name that no other skill of the owner has: it may have been taken since the text had it."""
    others = Skill.objects.with_owner_of(skill).exclude(pk=skill.pk)
    found, number = name, 1
    while others.filter(name=found).exists():
        number += 1
        end = f"-{number}"
        found = name[: MAX_NAME_CHARS - len(end)].rstrip("-") + end
    return found


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
