"""Everything that was learned for an end user goes: lessons, skills, runs, searches, indexes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mirix.tenants.erasure import Erasing
from mirix.tenants.models import EndUser, Organization
from skills.models import (
    AutoDreamRun,
    DistillationAttempt,
    ProposerCall,
    ReviewDecision,
    SearchChange,
    SearchEvent,
    Skill,
    SkillDocument,
    SkillEmbedding,
    SkillExperience,
    SkillPosting,
    SkillRevision,
)
from skills.search.embedding import EMBED_SKILLS
from skills.triggers import RUN_DREAM

LOCKED = (AutoDreamRun, Skill, SkillRevision, SkillExperience)
"""In the order in which writers lock them."""
OWNED = (
    SkillPosting,
    SkillDocument,
    SkillEmbedding,
    SearchChange,
    SearchEvent,
    SkillExperience,
    ProposerCall,
    DistillationAttempt,
)
SUPPORT: Any = SkillRevision.experiences.through


def lock_end_user(end_user: EndUser) -> None:
    """Take the locks of what belongs to one end user."""
    lock_owned(end_user.organization, [end_user.pk])


def lock_owned(organization: Organization, end_users: Collection[str]) -> None:
    """Lock the runs, since each write of a run begins with its row, then what everybody else locks."""
    for model in LOCKED:
        rows: Any = model.objects.for_organization(organization).filter(end_user__in=end_users)
        list(rows.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def erase_end_user(end_user: EndUser, erasing: Erasing) -> None:
    """Erase all of it. A run that is going on finds its row gone, and writes no more."""
    of_owner = {"end_user": end_user}
    revisions = SkillRevision.objects.with_organization_of(end_user).filter(**of_owner)
    erase_revisions(revisions, erasing)
    skills = erasing.delete(Skill.objects.with_organization_of(end_user).filter(**of_owner))
    erasing.drop_jobs(EMBED_SKILLS, "skill_ids", skills)
    for model in OWNED:
        rows: Any = model.objects.with_organization_of(end_user)
        erasing.delete(rows.filter(**of_owner))
    runs = erasing.delete(AutoDreamRun.objects.with_organization_of(end_user).filter(**of_owner))
    erasing.drop_jobs(RUN_DREAM, "run_id", runs)


def erase_revisions(revisions: Any, erasing: Erasing) -> list[str]:
    """Erase revisions with their decisions and support; what refers to them is the caller's part."""
    pks = list(revisions.values_list("pk", flat=True))
    decisions = ReviewDecision.objects.for_organization(erasing.organization)
    erasing.delete(decisions.filter(revision__in=pks))
    erasing.delete(SUPPORT.objects.filter(skillrevision__in=pks))
    return erasing.delete(SkillRevision.objects.for_organization(erasing.organization).filter(pk__in=pks))
