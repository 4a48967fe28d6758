"""Why a proposal that waits may not be published: rules for who publishes and who looks ahead."""

from __future__ import annotations

from collections.abc import Collection

from skills.models import Skill, SkillExperience, SkillRevision, SkillStatus
from skills.review.bases import has_moved
from skills.review.errors import BaseConflict, UnverifiedSupport
from skills.review.support import stands_on_nothing_verified


def is_source_gone(revision: SkillRevision) -> bool:
    """Return whether the skill that a merge takes in says something else by now than what it takes in."""
    source = revision.merged_from
    return source is not None and has_moved(skill=source.skill, base=source)


def refuse_unfit_merge(*, revision: SkillRevision, into: Skill | None) -> None:
    """Raise `BaseConflict` for a merge of what is gone, or that leaves agents with neither of two skills."""
    source = revision.merged_from
    if source is None:
        return
    if is_source_gone(revision):
        now = f"is at {source.skill.version}" if source.skill else "does not exist"
        raise BaseConflict(
            f"{revision.pk} takes in version {source.version} of “{source.name}”, which {now} by now."
        )
    if into is not None and into.status != SkillStatus.ACTIVE:
        raise BaseConflict(
            f"{revision.pk} merges “{source.name}” into “{into.name}”, which is {into.status} by "
            "now: bring that one back first, or reject this."
        )


def moved_on(*, revision: SkillRevision, skill: Skill | None) -> BaseConflict:
    """Return the refusal of a change that does not fit what its skill says by now."""
    base = f"version {revision.base.version}" if revision.base else "no published version"
    now = f"is at {skill.version}" if skill else "does not exist"
    return BaseConflict(f"{revision.pk} was made against {base} of “{revision.name}”, which {now} by now.")


def refuse_unverified(*, revision: SkillRevision, support: Collection[SkillExperience]) -> None:
    """Raise `UnverifiedSupport` where there is support, and none that is verified and trusted."""
    if stands_on_nothing_verified(support):
        raise UnverifiedSupport(f"{revision.pk} rests on unverified or quarantined experiences alone.")
