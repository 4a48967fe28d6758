"""Skills that agents used elsewhere: they go on to be used here, at their version and with their past.

They are no proposals, since somebody relies on them; what they were made of stays in their first revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from mirix.moments import set_moments
from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import AuthorKind, RevisionAction, RevisionState, Skill, SkillRevision
from skills.review.risks import risk_flags
from skills.search.index import index_skills


@dataclass(frozen=True, kw_only=True)
class LiveSkill:
    """A skill as it was elsewhere."""

    id: str
    """The key that it gets here: the same each time that it comes."""
    owner: Owner
    content: Content
    version: str
    source: dict[str, Any]
    """What it was made of, as it was found; plain JSON that can be stored."""
    created_at: datetime | None
    updated_at: datetime | None


@transaction.atomic
def adopt(*, skills: Sequence[LiveSkill], rationale: str) -> list[Skill]:
    """Write skills that are live from now on, each with its first revision, and index them.

    Their content is kept even where it breaks a rule of today's, such as a length: the next edit has to put
    that right. The caller has looked that the ids are new and the names free.
    """
    made = Skill.objects.bulk_create(
        Skill(id=skill.id, version=skill.version, **_owner(skill), **skill.content.as_fields())
        for skill in skills
    )
    revisions = SkillRevision.objects.bulk_create(_revision(skill, rationale) for skill in skills)
    for row, revision in zip(made, revisions, strict=True):
        row.current_revision = revision
    Skill.objects.bulk_update(made, ["current_revision"])
    moments = [(skill.id, skill.created_at, skill.updated_at or skill.created_at) for skill in skills]
    set_moments(Skill, ["created_at", "updated_at"], moments)
    index_skills(made)
    return made


def _owner(skill: LiveSkill) -> dict[str, Any]:
    return {"organization": skill.owner.organization, "end_user": skill.owner.end_user}


def _revision(skill: LiveSkill, rationale: str) -> SkillRevision:
    return SkillRevision(
        skill_id=skill.id,
        action=RevisionAction.IMPORT,
        author_kind=AuthorKind.IMPORT,
        rationale=rationale,
        source=skill.source,
        risk_flags=risk_flags(
            before=None,
            after=skill.content,
            support=[],
            max_instructions_chars=settings.MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS,
        ),
        content_hash=skill.content.hash,
        version=skill.version,
        state=RevisionState.PUBLISHED,
        decided_at=timezone.now(),
        **_owner(skill),
        **skill.content.as_fields(),
    )
