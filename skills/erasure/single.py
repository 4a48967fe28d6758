"""One skill goes, with its past and whatever is made of it; the lessons behind it stay used up."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from mirix.tenants.audit import Actor
from mirix.tenants.erasure import Erasing, NothingThere, erase_rows
from mirix.tenants.models import ErasedKind, ErasureReceipt
from skills.erasure.owners import erase_revisions
from skills.erasure.runs import drop_answers, end_runs
from skills.models import (
    RevisionState,
    Skill,
    SkillDocument,
    SkillEmbedding,
    SkillPosting,
    SkillRevision,
)
from skills.search.changes import note_change
from skills.search.embedding import EMBED_SKILLS


def erase_skill(*, skill: Skill, actor: Actor, dry_run: bool = False) -> ErasureReceipt:
    """Erase a skill with all revisions and decisions, proposals that would merge it, and its indexes.

    The experiences behind it are its sessions' and stay, as used up: no run makes the same skill of them
    again. A run of the owner that is going on ends. Raises `NothingThere` where it is gone by now.
    """

    def act(erasing: Erasing) -> None:
        end_runs([skill.end_user_id], erasing)
        rows = Skill.objects.with_owner_of(skill).filter(pk=skill.pk)
        if rows.select_for_update(of=("self",)).first() is None:
            raise NothingThere(f"{skill.pk} is not there any more.")
        remove_skills([skill.pk], erasing)
        drop_answers([skill.end_user_id], erasing)

    return erase_rows(
        organization=skill.organization,
        kind=ErasedKind.SKILL,
        subject=skill,
        actor=actor,
        act=act,
        dry_run=dry_run,
    )


def remove_skills(pks: Collection[str], erasing: Erasing) -> None:
    """Delete locked skills of the organization with all that is made of them."""
    if not pks:
        return
    skills = Skill.objects.for_organization(erasing.organization).filter(pk__in=pks)
    note_change(skills)
    revisions = SkillRevision.objects.for_organization(erasing.organization)
    own = list(revisions.filter(skill__in=pks).values_list("pk", flat=True))
    # What would take its text into another skill.
    merging = revisions.filter(merged_from__in=own, state=RevisionState.PROPOSED)
    remove_revisions({*own, *merging.values_list("pk", flat=True)}, erasing)
    documents = SkillDocument.objects.for_organization(erasing.organization).filter(skill__in=pks)
    postings = SkillPosting.objects.for_organization(erasing.organization)
    erasing.delete(postings.filter(document__in=list(documents.values_list("pk", flat=True))))
    erasing.delete(documents)
    embeddings = SkillEmbedding.objects.for_organization(erasing.organization)
    erasing.delete(embeddings.filter(skill__in=pks))
    erasing.delete(skills)
    erasing.drop_jobs(EMBED_SKILLS, "skill_ids", pks)


def remove_revisions(pks: Collection[str], erasing: Erasing) -> None:
    """Delete revisions; those that were made against them, or instead of them, stand for themselves."""
    revisions: Any = SkillRevision.objects.for_organization(erasing.organization)
    for link in ("base", "supersedes", "merged_from"):
        revisions.filter(**{f"{link}__in": pks}).update(**{link: None})
    erase_revisions(revisions.filter(pk__in=pks), erasing)
