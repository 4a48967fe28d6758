"""What approving or rejecting a proposal would do now: read from rows that are there, never written.

The services decide by themselves when it is done; this says the same beforehand, by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from mirix.tenants.selectors import Effective
from skills.content import Content, next_patch
from skills.models import RevisionState, Skill, SkillExperience, SkillRevision
from skills.review.bases import has_moved, on_today
from skills.review.errors import InvalidContent, ReviewError
from skills.review.policy import hold_against_policy
from skills.review.refusals import is_source_gone, moved_on, refuse_unfit_merge, refuse_unverified
from skills.review.support import sessions_behind
from skills.review.validation import content_errors
from skills.review.versions import FIRST_VERSION


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What approving would come to; `refusal` says why it would be refused, and is empty where it is not."""

    version: str
    """That the skill would be at."""
    before: Content | None
    """What the skill says now; None for a new one."""
    after: Content
    """What it would say."""
    is_rebased: bool
    """Whether the change is brought onto a version that is later than the one it was made against."""
    refusal: str


def with_what_decides(revisions: QuerySet) -> QuerySet:
    """Fetch with proposals all that `approval_of` reads; as many queries for many as for one."""
    support = Prefetch(
        "experiences",
        queryset=SkillExperience.objects.select_related("session").only(
            "id", "session__history_hash", "verified", "quarantined"
        ),
        to_attr="support",
    )
    same_owner = Q(organization=OuterRef("organization"), end_user=OuterRef("end_user"))
    namesakes = Skill.objects.filter(same_owner, name=OuterRef("name"))
    revisions = revisions.select_related(
        "organization", "skill__current_revision", "base", "merged_from__skill__current_revision"
    )
    return revisions.prefetch_related(support).annotate(is_name_taken=Exists(namesakes))


def approval_of(revision: SkillRevision, *, decided_by: User, chosen: Effective) -> Forecast:
    """Return what it would come to if `decided_by`, who may decide, approved the proposal now.

    `revision` comes from `with_what_decides` and waits; `chosen` is what holds for its organization.
    """
    skill = revision.skill
    fitting = on_today(skill=skill, revision=revision)
    after = fitting or Content.of(revision)
    refusal = ""
    try:
        refuse_unfit_merge(revision=revision, into=skill)
        if fitting is None:
            raise moved_on(revision=revision, skill=skill)
        support = revision.support  # type: ignore[attr-defined]
        refuse_unverified(revision=revision, support=support)
        hold_against_policy(
            revision=revision, decided_by=decided_by, chosen=chosen, sessions=sessions_behind(support)
        )
        if errors := content_errors(after):
            raise InvalidContent(errors)
        if skill is None and revision.is_name_taken:  # type: ignore[attr-defined]
            raise InvalidContent({"name": [f"Another skill is called “{revision.name}” already."]})
    except ReviewError as error:
        refusal = str(error)
    return Forecast(
        version=next_patch(skill.version) if skill else FIRST_VERSION,
        before=Content.of(skill) if skill else None,
        after=after,
        is_rebased=fitting is not None and has_moved(skill=skill, base=revision.base),
        refusal=refusal,
    )


def lapses(revision: SkillRevision) -> bool:
    """Return whether rejecting a proposal that waits would let it lapse, as it does not fit any more."""
    assert revision.state == RevisionState.PROPOSED
    return is_source_gone(revision) or on_today(skill=revision.skill, revision=revision) is None
