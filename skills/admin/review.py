"""What a reviewer reads before deciding: what changes, why, and what to watch."""

from __future__ import annotations

from typing import Any

from skills.admin.evidence import view_experience
from skills.content import Content, next_patch
from skills.models import RevisionState, SkillRevision
from skills.review.bases import has_moved, on_today
from skills.review.diffs import changed_words, field_diffs
from skills.review.risks import RISK_LABELS
from skills.review.versions import FIRST_VERSION
from skills.selectors.proposals import evidence_of

FIELD_LABELS = {
    "name": "Name",
    "entry_type": "Kind",
    "description": "Description",
    "instructions": "Instructions",
    "triggers": "Triggers",
    "examples": "Examples",
    "filter_tags": "Filter tags",
}


def review_context(revision: SkillRevision, before: Content | None) -> dict[str, Any]:
    """Return what the page of a revision shows."""
    moved = _moved(revision)
    after = (on_today(skill=revision.skill, revision=revision) if moved else None) or Content.of(revision)
    diffs = field_diffs(before, after)
    added, removed = changed_words(diffs)
    return {
        "revision": revision,
        "skill": revision.skill,
        "is_new": before is None,
        "waits": revision.state == RevisionState.PROPOSED,
        "diffs": [(FIELD_LABELS[diff.field], diff) for diff in diffs if diff.changed],
        "unchanged": [(FIELD_LABELS[diff.field], diff) for diff in diffs if not diff.changed],
        "next_version": next_patch(revision.skill.version) if revision.skill else FIRST_VERSION,
        "added": added,
        "removed": removed,
        "risks": [RISK_LABELS.get(flag, flag) for flag in revision.risk_flags],
        "unsupported": revision.unsupported,
        "evidence": [view_experience(experience) for experience in evidence_of(revision=revision)],
        "decisions": revision.decisions.order_by("created_at", "id"),
        "successor": SkillRevision.objects.with_owner_of(revision).filter(supersedes=revision).first(),
        "moved": moved,
        "fits": after != Content.of(revision),
    }


def _moved(revision: SkillRevision) -> bool:
    """Whether the skill was published anew since the proposal was made."""
    if revision.state != RevisionState.PROPOSED or revision.skill is None:
        return False
    return has_moved(skill=revision.skill, base=revision.base)
