"""What makes a revision a version of its skill, for the services of this package, which hold its lock."""

from __future__ import annotations

from collections.abc import Collection

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from skills.content import Content, next_patch
from skills.models import (
    AuthorKind,
    Decision,
    ReviewDecision,
    RevisionAction,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.errors import InvalidContent
from skills.review.risks import risk_flags
from skills.review.support import as_support
from skills.search.index import index_skill

FIRST_VERSION = "0.1.0"


def publish_anew(
    skill: Skill,
    content: Content,
    action: RevisionAction,
    origin: SkillRevision | None,
    experiences: Collection[SkillExperience],
    decided_by: User | None,
    reason: str,
) -> SkillRevision:
    """Write a revision that is published as it is made; `skill` is locked and has its new status.

    `origin` is the revision whose text it is; what that one came from, this one does.
    """
    revision = SkillRevision(
        organization=skill.organization,
        end_user=skill.end_user,
        skill=skill,
        base=skill.current_revision,
        action=action,
        author_kind=AuthorKind.HUMAN,
        author=decided_by,
        rationale=reason,
        source=origin.source if origin else None,
        content_hash=content.hash,
        risk_flags=risk_flags(
            before=Content.of(skill),
            after=content,
            support=[as_support(experience) for experience in experiences],
            max_instructions_chars=settings.MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS,
        ),
        version=next_patch(skill.version),
        state=RevisionState.PUBLISHED,
        decided_at=timezone.now(),
        **content.as_fields(),
    )
    revision.save(force_insert=True)
    revision.experiences.set(experiences)
    write_skill(revision, skill, content)
    record_decision(revision, Decision.APPROVE, decided_by, AuthorKind.HUMAN, reason)
    index_skill(skill)
    return revision


def write_skill(revision: SkillRevision, skill: Skill | None, content: Content) -> Skill:
    """Make a revision what its skill says, a new one without `skill`, with the version raised.

    One that proposes to restore the skill takes it into use again. Raises `InvalidContent` where another
    skill has the name.
    """
    if skill is None:
        skill = Skill(organization=revision.organization, end_user=revision.end_user, version=FIRST_VERSION)
    else:
        skill.version = next_patch(skill.version)
        if revision.action == RevisionAction.RESTORE:
            skill.status = SkillStatus.ACTIVE
    for name, value in content.as_fields().items():
        setattr(skill, name, value)
    skill.current_revision = revision
    try:
        with transaction.atomic():
            skill.save()
    except IntegrityError as error:
        namesakes = Skill.objects.with_owner_of(revision).filter(name=content.name)
        if not namesakes.exclude(pk=skill.pk).exists():
            raise
        raise InvalidContent({"name": [f"Another skill is called “{content.name}” already."]}) from error
    return skill


def record_decision(
    revision: SkillRevision,
    decision: Decision,
    decided_by: User | None,
    kind: str,
    reason: str,
) -> None:
    """Write down who decided what."""
    ReviewDecision.objects.create(
        organization=revision.organization,
        revision=revision,
        decision=decision,
        decided_by=decided_by,
        decided_by_name=decided_by.get_username() if decided_by else "",
        decided_by_kind=kind,
        reason=reason,
    )
