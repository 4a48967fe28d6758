"""What people decided against in one owner's library: what evolution must not simply propose again."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from django.db.models import Q, QuerySet

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.rejected import Rejected
from skills.evolution.types import ExperienceView
from skills.evolution.views import experience_view
from skills.models import AuthorKind, RevisionAction, RevisionState, SkillRevision

MAX_STRUCK = 300
"""How many of the latest texts by persons are looked at for what they left out."""


def rejected_of(owner: Owner) -> list[Rejected]:
    """Return what was turned down: rejected proposals, then what persons left out of texts, latest first."""
    return [*_rejected(owner), *_struck(owner)]


def _rejected(owner: Owner) -> Iterator[Rejected]:
    revisions = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.REJECTED)
    for revision in _with_support(revisions).order_by("-decided_at", "pk"):
        yield Rejected(
            revision_id=revision.pk,
            skill_id=revision.skill_id,
            action=revision.action,
            content=Content.of(revision),
            base=Content.of(revision.base) if revision.base else None,
            support=_support(revision.experiences.all()),
        )


def _struck(owner: Owner) -> Iterator[Rejected]:
    """Yield what persons took out: of a proposal, in each of their drafts, or of a skill by hand or rollback.

    A draft counts whatever took its place later, unless it was rejected itself; what is published, by what it
    was before as well. A merge is left out, which moves what was said.
    """
    by_person = Q(author_kind=AuthorKind.HUMAN, action__in=(RevisionAction.CREATE, RevisionAction.EDIT))
    is_draft = Q(supersedes__isnull=False, state__in=(RevisionState.SUPERSEDED, RevisionState.PROPOSED))
    is_version = Q(state=RevisionState.PUBLISHED)
    texts = SkillRevision.objects.for_owner(owner).filter(
        (by_person & (is_draft | is_version)) | (is_version & Q(action=RevisionAction.ROLLBACK)),
        merged_from=None,
    )
    texts = texts.select_related("supersedes").prefetch_related("supersedes__experiences__session")
    for revision in _with_support(texts).order_by("-created_at", "pk")[:MAX_STRUCK]:
        is_published = revision.state == RevisionState.PUBLISHED
        for former in (revision.supersedes, revision.base if is_published else None):
            if former is None or former.content_hash == revision.content_hash:
                continue
            yield Rejected(
                revision_id=former.pk,
                skill_id=revision.skill_id,
                action=RevisionAction.EDIT,
                content=Content.of(former),
                base=Content.of(revision),
                support=_support(former.experiences.all()),
                is_whole=False,
            )


def _with_support(revisions: QuerySet[SkillRevision]) -> QuerySet[SkillRevision]:
    return revisions.select_related("base").prefetch_related(
        "experiences__session", "base__experiences__session"
    )


def _support(rows: Collection) -> tuple[ExperienceView, ...]:
    return tuple(map(experience_view, rows))
