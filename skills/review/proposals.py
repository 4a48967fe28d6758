"""Writing proposals: revisions that wait for a person's decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.gates import rewritten
from skills.evolution.rules import limits
from skills.models import (
    AuthorKind,
    AutoDreamRun,
    ExperienceStatus,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
)
from skills.review.bases import has_moved
from skills.review.errors import InvalidContent, ProposalConflict
from skills.review.risks import risk_flags
from skills.review.support import as_support, unsupported_in
from skills.review.tags import shared_tags
from skills.review.validation import content_errors


@transaction.atomic
def propose(
    *,
    owner: Owner,
    content: Content,
    skill: Skill | None = None,
    target_revision: SkillRevision | None = None,
    action: str,
    author_kind: str,
    experiences: Collection[SkillExperience],
    rationale: str,
    run: AutoDreamRun | None = None,
    author: User | None = None,
    source: dict[str, Any] | None = None,
    on_new_base: bool = False,
    merged_from: SkillRevision | None = None,
) -> SkillRevision:
    """Write a proposal and mark its experiences as consumed; return the new revision.

    Without `skill` it proposes a new one. At most one proposal is open per skill or pending new skill:
    to change an open one, name it as `target_revision`; the new revision then takes its place and carries
    on its experiences, so `content` must be an edit of the open text. `content.filter_tags` count only
    where no session supports the revision; else they are the pairs that all supporting sessions of the
    skill share. `source` is what an import found, kept with the revision. An open proposal that was made
    before the skill's version of today is amended only where the caller says that `content` is an edit of
    that version (`on_new_base`), as `skills.review.bases.on_today` returns it. `merged_from`
    is the version of another skill that `content` takes in; what amends a merge is one too.

    Raises `InvalidContent` for content that could never be published and `ProposalConflict` when the
    target is no longer open or the skill has moved on, when a proposal that the caller did not name is
    open, when the name is taken, or when an experience is gone. Nothing is written then.
    """
    skill = _locked_skill(owner, skill or (target_revision.skill if target_revision else None))
    replaced = _superseded(owner, skill, target_revision, on_new_base=on_new_base)
    carried = list(replaced.experiences.all()) if replaced else []
    support = _consumed(owner, [*experiences, *carried])
    base = skill.current_revision if skill else None
    merged_from = merged_from or (replaced.merged_from if replaced else None)
    earlier = [row.filter_tags for row in (skill, merged_from) if row is not None]
    content = _with_shared_tags(content, earlier, support)
    _refuse_invalid(owner, content, skill)
    before = Content.of(base) if base else None
    # What a person adds needs no session behind it.
    unsupported = [] if author_kind == AuthorKind.HUMAN else unsupported_in(before, content, support)
    revision = SkillRevision(
        organization=owner.organization,
        end_user=owner.end_user,
        skill=skill,
        base=base,
        supersedes=replaced,
        merged_from=merged_from,
        action=action,
        author_kind=author_kind,
        author=author,
        run=run,
        rationale=rationale,
        source=source,
        content_hash=content.hash,
        risk_flags=_flags(before, content, support, unsupported, author_kind, merged_from),
        unsupported=unsupported,
        **content.as_fields(),
    )
    try:
        with transaction.atomic():
            revision.save(force_insert=True)
    except IntegrityError as error:
        raise ProposalConflict(f"Another open proposal for “{content.name}” came first.") from error
    revision.experiences.set(support)
    return revision


def flags_today(revision: SkillRevision) -> list[str]:
    """Return the risks of a proposal with what supports it by now, which a run may have added to."""
    before = Content.of(revision.base) if revision.base else None
    support = list(revision.experiences.select_related("turn", "session"))
    content, by = Content.of(revision), revision.author_kind
    return _flags(before, content, support, revision.unsupported, by, revision.merged_from)


def _flags(
    before: Content | None,
    content: Content,
    support: Collection[SkillExperience],
    unsupported: list[str],
    author_kind: str,
    merged_from: SkillRevision | None,
) -> list[str]:
    return risk_flags(
        before=before,
        after=content,
        support=[as_support(experience) for experience in support],
        max_instructions_chars=settings.MIRIX_SKILL_MAX_INSTRUCTIONS_CHARS,
        unsupported=unsupported,
        rewritten=_is_rewritten(before, content, author_kind, merged_from),
    )


def _is_rewritten(
    before: Content | None, content: Content, author_kind: str, merged_from: SkillRevision | None
) -> bool:
    """Return whether edits that no person wrote change more than one of them may."""
    by_edits = author_kind in (AuthorKind.LLM, AuthorKind.OFFLINE) and merged_from is None
    return by_edits and bool(rewritten(before, content, limits()))


def _locked_skill(owner: Owner, skill: Skill | None) -> Skill | None:
    """Lock the skill before any revision of it, as every writer does; it must be as the caller read it."""
    if skill is None:
        return None
    locked = Skill.objects.for_owner(owner).select_for_update(no_key=True).filter(pk=skill.pk).first()
    if locked is None:
        raise ProposalConflict(f"The skill {skill.pk} is gone.")
    if locked.current_revision_id != skill.current_revision_id:
        raise ProposalConflict(f"“{locked.name}” is at version {locked.version} by now; read it again.")
    return locked


def _superseded(
    owner: Owner, skill: Skill | None, target: SkillRevision | None, *, on_new_base: bool
) -> SkillRevision | None:
    """Close the open proposal that the new one replaces; it must be the one that the caller read."""
    revisions = SkillRevision.objects.for_owner(owner).select_for_update(no_key=True, of=("self",))
    if skill is not None:
        found = revisions.filter(skill=skill, state=RevisionState.PROPOSED).first()
    elif target is not None:
        found = revisions.filter(pk=target.pk, state=RevisionState.PROPOSED, skill=None).first()
    else:
        return None
    if target is not None and (found is None or found.pk != target.pk):
        raise ProposalConflict(f"The proposal {target.pk} is no longer open.")
    if target is None and found is not None:
        what = f" to take “{found.merged_from.name}” in" if found.merged_from else ""
        raise ProposalConflict(f"The proposal {found.pk} for “{found.name}”{what} is open; amend that one.")
    if found and skill and not on_new_base and has_moved(skill=skill, base=found.base):
        raise ProposalConflict(f"The proposal {found.pk} was made before version {skill.version}.")
    if found is not None:
        found.state = RevisionState.SUPERSEDED
        found.save(update_fields=["state"])
    return found


def _consumed(owner: Owner, experiences: Collection[SkillExperience]) -> list[SkillExperience]:
    """Lock the experiences, mark them as used and return them, oldest first."""
    wanted = {experience.pk for experience in experiences}
    found = list(
        SkillExperience.objects.for_owner(owner)
        .select_for_update(no_key=True, of=("self",))
        .select_related("turn", "session")
        .filter(pk__in=wanted)
        .order_by("pk")
    )
    if len(found) < len(wanted):
        raise ProposalConflict(f"{len(wanted) - len(found)} of the experiences are gone.")
    SkillExperience.objects.for_owner(owner).filter(pk__in=wanted).update(status=ExperienceStatus.CONSUMED)
    for experience in found:
        experience.status = ExperienceStatus.CONSUMED
    return found


def _with_shared_tags(
    content: Content, earlier: Collection[dict[str, Any]], support: list[SkillExperience]
) -> Content:
    """Narrow the tags to what all support shares; the tags of skills stand for their earlier support."""
    if not support:
        return content
    tags = shared_tags([*earlier, *(experience.filter_tags for experience in support)])
    return replace(content, filter_tags=tags)


def _refuse_invalid(owner: Owner, content: Content, skill: Skill | None) -> None:
    if errors := content_errors(content):
        raise InvalidContent(errors)
    namesake = Skill.objects.for_owner(owner).filter(name=content.name)
    if skill is not None:
        namesake = namesake.exclude(pk=skill.pk)
    if taken := namesake.first():
        raise ProposalConflict(f"The name “{content.name}” belongs to the skill {taken.pk}.")
