"""One skill of two: a proposal that takes another skill's text in, whose approval archives that skill.

What the other one learned goes along: its experiences stand behind the proposal, and what it was stays in its
own history.
"""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.evolution.merging import merge
from skills.models import (
    AuthorKind,
    Decision,
    RevisionAction,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.errors import NothingToDo
from skills.review.proposals import propose
from skills.review.publishing import reject
from skills.review.tags import shared_tags


@transaction.atomic
def propose_merge(
    *, source: Skill, target: Skill, author: User | None = None, reason: str = ""
) -> SkillRevision:
    """Propose that `target` also says what `source` says, and that `source` is archived then; return it.

    Asked for again while it waits, it returns the proposal that waits. It is never published without a
    decision.

    Raises `NothingToDo` when the two are one, of two owners, without a version, or out of use,
    `ProposalConflict` when another proposal for `target` waits, and what `propose` raises. Nothing is
    written then.
    """
    _refuse_unfit(source, target)
    skills = Skill.objects.with_owner_of(target).select_for_update(no_key=True).order_by("pk")
    locked = {skill.pk: skill for skill in skills.filter(pk__in=[source.pk, target.pk])}
    source, target = locked[source.pk], locked[target.pk]
    for skill in (source, target):
        if skill.status == SkillStatus.ARCHIVED or skill.current_revision is None:
            raise NothingToDo(f"“{skill.name}” is out of use.")
    waiting = target.revisions.filter(
        state=RevisionState.PROPOSED, merged_from=source.current_revision, base=target.current_revision
    ).first()
    if waiting is not None:
        return waiting
    content = merge(Content.of(target), Content.of(source))
    return propose(
        owner=Owner(organization=target.organization, end_user=target.end_user),
        content=replace(content, filter_tags=shared_tags([target.filter_tags, source.filter_tags])),
        skill=target,
        action=RevisionAction.EDIT,
        author_kind=AuthorKind.HUMAN,
        author=author,
        experiences=SkillExperience.objects.with_owner_of(source)
        .filter(revisions__skill=source, revisions__state=RevisionState.PUBLISHED)
        .distinct(),
        rationale=reason or f"“{source.name}” {source.version} goes into it, and out of use.",
        merged_from=source.current_revision,
    )


@transaction.atomic
def merge_proposal(
    *, proposal: SkillRevision, into: Skill, decided_by: User, reason: str = ""
) -> SkillRevision:
    """Put what a pending new skill says into a skill that there is: a proposal for that, with its evidence.

    The proposal itself is rejected, with where it went as the reason; return the new one, which waits. Asked
    for again while it waits, it returns that one.

    Raises `NothingToDo` when it proposes no new skill, belongs to another end user, or `into` is out of use
    or says all of it already; `ProposalConflict` when another proposal for `into` waits; and what `reject`
    and `propose` raise. Nothing is written then.
    """
    if proposal.skill_id is not None:
        raise NothingToDo(f"“{proposal.name}” is there already: merge the skill itself.")
    if (proposal.organization_id, proposal.end_user_id) != (into.organization_id, into.end_user_id):
        raise NothingToDo(f"“{proposal.name}” and “{into.name}” belong to different end users.")
    into = Skill.objects.with_owner_of(proposal).select_for_update(no_key=True).get(pk=into.pk)
    if into.status == SkillStatus.ARCHIVED:
        raise NothingToDo(f"“{into.name}” is out of use.")
    before = Content.of(into)
    content = merge(before, Content.of(proposal))
    if content == before:
        raise NothingToDo(f"“{into.name}” says all of that already: reject this for it.")
    waiting = into.revisions.filter(state=RevisionState.PROPOSED, author_kind=AuthorKind.HUMAN).first()
    if waiting and _says(waiting, content) and _went_into(proposal, into):
        return waiting
    reject(revision=proposal, decided_by=decided_by, reason=f"{went_into(into.name)} {reason}".strip())
    return propose(
        owner=Owner(organization=into.organization, end_user=into.end_user),
        content=content,
        skill=into,
        action=RevisionAction.EDIT,
        author_kind=AuthorKind.HUMAN,
        author=decided_by,
        experiences=proposal.experiences.all(),
        rationale=reason or f"What the proposal “{proposal.name}” says goes into it.",
        run=proposal.run,
    )


def went_into(name: str) -> str:
    """Return how the reason begins for which a proposal was rejected that was put into a skill."""
    return f"It goes into “{name}”."


def _says(revision: SkillRevision, content: Content) -> bool:
    return replace(Content.of(revision), filter_tags={}) == replace(content, filter_tags={})


def _went_into(proposal: SkillRevision, into: Skill) -> bool:
    """Return whether a proposal was put into a skill before."""
    rejections = proposal.decisions.filter(decision=Decision.REJECT)
    return rejections.filter(reason__startswith=went_into(into.name)).exists()


def _refuse_unfit(source: Skill, target: Skill) -> None:
    if source.pk == target.pk:
        raise NothingToDo(f"“{target.name}” cannot be merged into itself.")
    owners = {(skill.organization_id, skill.end_user_id) for skill in (source, target)}
    if len(owners) > 1:
        raise NothingToDo(f"“{source.name}” and “{target.name}” belong to different end users.")
