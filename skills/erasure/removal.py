"""Skills and revisions deleted with all that is made of them, and without a word of them in what stays."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Q

from mirix.tenants.erasure import Erasing
from skills.erasure.owners import erase_revisions
from skills.models import (
    ReviewDecision,
    RevisionState,
    Skill,
    SkillDocument,
    SkillEmbedding,
    SkillPosting,
    SkillRevision,
)
from skills.review.merges import went_into
from skills.search.changes import note_change
from skills.search.embedding import EMBED_SKILLS

NAMED_IT = "What stood here named a skill that was erased."


def remove_skills(pks: Collection[str], erasing: Erasing) -> None:
    """Delete locked skills of the organization with all that is made of them.

    That includes the proposals that they came of, those that were put into them, and those that would have
    taken their text into another skill. What such a skill was made of, or went into, stays.
    """
    if not pks:
        return
    skills = Skill.objects.for_organization(erasing.organization).filter(pk__in=pks)
    note_change(skills)
    for skill in skills.select_related("organization", "end_user"):
        _remove_past(skill, erasing)
    documents = SkillDocument.objects.for_organization(erasing.organization).filter(skill__in=pks)
    postings = SkillPosting.objects.for_organization(erasing.organization)
    erasing.delete(postings.filter(document__in=list(documents.values_list("pk", flat=True))))
    erasing.delete(documents)
    embeddings = SkillEmbedding.objects.for_organization(erasing.organization)
    erasing.delete(embeddings.filter(skill__in=pks))
    erasing.delete(skills)
    erasing.drop_jobs(EMBED_SKILLS, "skill_ids", pks)


def _remove_past(skill: Skill, erasing: Erasing) -> None:
    revisions = SkillRevision.objects.with_owner_of(skill)
    own = set(revisions.filter(skill=skill).values_list("pk", flat=True))
    names = {skill.name, *revisions.filter(skill=skill).values_list("name", flat=True)}
    merging = revisions.filter(merged_from__in=own).exclude(state=RevisionState.PUBLISHED)
    put_in = revisions.filter(skill=None, state=RevisionState.REJECTED).filter(
        _any(Q(decisions__reason__startswith=went_into(name)) for name in names)
    )
    going = {*own, *_keys(merging), *_keys(put_in)}
    later = going
    while later := _keys(_drafts_of(revisions, later)) - going:
        going |= later
    remove_revisions(going, erasing)
    _forget_names(skill, names, erasing)


def _drafts_of(revisions: Any, later: Collection[str]) -> Any:
    """Return the proposals for a new skill that these took the place of."""
    return revisions.filter(skill=None, pk__in=revisions.filter(pk__in=later).values("supersedes"))


def _keys(rows: Any) -> set[str]:
    return set(rows.values_list("pk", flat=True))


def _forget_names(skill: Skill, names: Iterable[str], erasing: Erasing) -> None:
    """Take the notes out of what stays of the owner that name a skill as ours do, in these marks."""
    erasing.changed(SkillRevision, ReviewDecision)
    names = [f"“{name}”" for name in names]
    SkillRevision.objects.with_owner_of(skill).filter(
        _any(Q(rationale__contains=name) for name in names)
    ).update(rationale=NAMED_IT)
    ReviewDecision.objects.for_organization(erasing.organization).filter(
        _any(Q(reason__contains=name) for name in names), revision__end_user=skill.end_user
    ).update(reason=NAMED_IT)


def _any(conditions: Iterable[Q]) -> Q:
    found = Q()
    for condition in conditions:
        found |= condition
    return found


def remove_revisions(pks: Collection[str], erasing: Erasing) -> None:
    """Delete revisions.

    What was made against one stands on the last before it that stays; what was made instead of one, or of
    its text, stands for itself.
    """
    revisions: Any = SkillRevision.objects.for_organization(erasing.organization)
    bases = dict(revisions.filter(pk__in=pks).values_list("pk", "base"))
    for pk, base in revisions.filter(base__in=pks).exclude(pk__in=pks).values_list("pk", "base"):
        while base in bases:
            base = bases[base]
        revisions.filter(pk=pk).update(base=base)
    for link in ("base", "supersedes", "merged_from"):
        revisions.filter(**{f"{link}__in": pks}).update(**{link: None})
    erase_revisions(revisions.filter(pk__in=pks), erasing)
