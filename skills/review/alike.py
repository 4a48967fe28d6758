"""Skills and proposals that say much of what a proposal says, for whoever decides about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.near import NEAR_JACCARD, Fingerprint, Measure, Nearness
from skills.models import RevisionState, Skill, SkillRevision
from skills.search.service import search

MAX_FOUND = 8
MAX_WAITING = 50
MAX_SHOWN = 3
WORTH_A_LOOK = 0.25
"""Texts with less in common, of 1, are not shown: most skills of one desk share some words."""


@dataclass(frozen=True, kw_only=True)
class Alike:
    """A skill, or a new one that waits too, that says much of what a proposal says."""

    skill: Skill | None
    revision: SkillRevision | None
    content: Content
    measure: Measure
    score: float
    """What they have in common, of 1: five-word runs of both texts, or the tools and steps that they name;
    1.0 where the names mean one thing."""

    @property
    def is_near(self) -> bool:
        """Whether a run would take the two for one."""
        return self.measure == "name" or self.score >= NEAR_JACCARD


def alike(*, revision: SkillRevision, content: Content) -> list[Alike]:
    """Return what says much of what `content` says, which a proposal makes of its skill; the nearest first.

    Looks at what a search by its words finds among the owner's active skills, and at the latest pending new
    skills: a bounded number of both, whatever the size of the library.
    """
    own = Fingerprint.of(content)
    merged_id = revision.merged_from.skill_id if revision.merged_from else None
    found = []
    for skill, other in _candidates(revision, content):
        if skill is not None and skill.pk in (revision.skill_id, merged_id):
            continue
        text = Content.of(skill or other)
        theirs = Fingerprint.of(text)
        near = own.nearness(theirs) or Nearness(measure="words", score=own.similarity(theirs))
        if near.score >= WORTH_A_LOOK:
            found.append(
                Alike(skill=skill, revision=other, content=text, measure=near.measure, score=near.score)
            )
    return sorted(found, key=lambda one: -one.score)[:MAX_SHOWN]


def _candidates(
    revision: SkillRevision, content: Content
) -> Iterator[tuple[Skill, None] | tuple[None, SkillRevision]]:
    owner = Owner(organization=revision.organization, end_user=revision.end_user)
    result = search(
        organization=owner.organization,
        owner=owner,
        query=f"{content.name} {content.description}",
        method="bm25",
        limit=MAX_FOUND,
    )
    yield from ((hit.skill, None) for hit in result.hits)
    waiting = SkillRevision.objects.for_owner(owner).filter(state=RevisionState.PROPOSED, skill=None)
    for other in waiting.exclude(pk=revision.pk).order_by("-created_at", "pk")[:MAX_WAITING]:
        yield None, other
