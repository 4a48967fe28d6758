"""What a reviewer reads before deciding: what changes, why, and what to watch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from mirix.shapes import as_texts
from skills.admin.changes import FIELD_LABELS, changes_context
from skills.admin.evidence import view_evidence
from skills.content import Content, next_patch
from skills.models import AuthorKind, RevisionState, SkillExperience, SkillRevision
from skills.review.addresses import addresses
from skills.review.alike import Alike, alike
from skills.review.bases import has_moved, on_today
from skills.review.diffs import field_diffs, readable_fields
from skills.review.disguise import plain
from skills.review.passages import passage_of
from skills.review.risks import RISK_ADVICE, RISK_LABELS
from skills.review.support import sessions_behind
from skills.review.versions import FIRST_VERSION
from skills.selectors.proposals import evidence_of

LEARNED = (AuthorKind.LLM, AuthorKind.OFFLINE, AuthorKind.DEMO)
COMPARED = ("description", "instructions")


@dataclass(frozen=True, kw_only=True)
class Watch:
    """One thing to look at twice: what it is, what to check, and what of the text it is about."""

    label: str
    advice: str
    things: Sequence[str] = ()


def review_context(request: HttpRequest, revision: SkillRevision, before: Content | None) -> dict[str, Any]:
    """Return what the page of a revision shows."""
    waits = revision.state == RevisionState.PROPOSED
    moved = waits and revision.skill is not None and has_moved(skill=revision.skill, base=revision.base)
    after = (on_today(skill=revision.skill, revision=revision) if moved else None) or Content.of(revision)
    support = list(evidence_of(revision=revision))
    return {
        **changes_context(request, revision=revision, before=before, after=after),
        "skill": revision.skill,
        "waits": waits,
        "next_version": next_patch(revision.skill.version) if revision.skill else FIRST_VERSION,
        "watch": list(_watch(revision, before, after, support)),
        "evidence": view_evidence(support),
        "sessions": sessions_behind(support),
        "lost_evidence": not support and revision.author_kind in LEARNED,
        "alike": [_beside(one, after) for one in alike(revision=revision, content=after)] if waits else [],
        "decisions": revision.decisions.order_by("created_at", "id"),
        "successor": SkillRevision.objects.with_owner_of(revision).filter(supersedes=revision).first(),
        "moved": moved,
        "fits": after != Content.of(revision),
    }


def _watch(
    revision: SkillRevision, before: Content | None, after: Content, support: Sequence[SkillExperience]
) -> Iterator[Watch]:
    """Yield what the flags say, and what became of the evidence since they were raised."""
    new, old = ("\n".join(readable_fields(text).values()) if text else "" for text in (after, before))
    known = set(addresses(plain(old)))
    things = {
        "unsupported_steps": as_texts(revision.unsupported),
        "new_address": [found for found in dict.fromkeys(addresses(plain(new))) if found not in known],
    }
    for flag in as_texts(revision.risk_flags):
        yield Watch(
            label=RISK_LABELS.get(flag, flag), advice=RISK_ADVICE.get(flag, ""), things=things.get(flag, ())
        )
    aside = sum(experience.quarantined for experience in support)
    if aside and "quarantined_support" not in as_texts(revision.risk_flags):
        yield Watch(
            label=f"{aside} of {len(support)} experiences behind it went into quarantine since",
            advice=RISK_ADVICE["quarantined_support"],
        )


def _beside(one: Alike, mine: Content) -> dict[str, Any]:
    """Return another text beside the proposal's."""
    diffs = field_diffs(one.content, mine)
    return {
        "alike": one,
        "per_cent": round(one.score * 100),
        "passages": [
            (FIELD_LABELS[diff.field], passage_of(diff)) for diff in diffs if diff.field in COMPARED
        ],
    }
