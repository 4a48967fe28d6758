"""A person writes: a skill, or a proposal that waits, in their own words.

Whoever edits says which revision they began with. Where somebody else was faster the edit is refused with
both texts, so that nobody overwrites what they have not read.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet

from mirix.tenants.models import ReviewPolicy
from mirix.tenants.owners import Owner
from mirix.tenants.selectors import effective
from skills.content import Content
from skills.models import AuthorKind, RevisionAction, RevisionState, Skill, SkillRevision
from skills.review.bases import has_moved, on_today
from skills.review.errors import AlreadyDecided, EditConflict, NothingToDo
from skills.review.proposals import propose
from skills.review.publishing import approve

BY_HAND = "Edited by hand."
BY_POLICY = "No risk flags: published by the organization's policy."


class Outcome(Enum):
    """What becomes of a person's text once they send it."""

    PUBLISHED = "published"
    PUBLISHED_WITHOUT_RISK = "published where it carries no risk flag, else proposed"
    PROPOSED = "proposed"
    PROPOSED_TO_OTHERS = "proposed, and its author does not decide about it"


def outcome_of_edit(*, row: Skill | SkillRevision, may_decide: bool) -> Outcome:
    """Return what an edit of a skill or a proposal comes to; `may_decide` as in `edit_skill`. One query."""
    chosen = effective(row.organization)
    if chosen.four_eyes:
        return Outcome.PROPOSED_TO_OTHERS
    if may_decide:
        return Outcome.PUBLISHED
    is_merge = isinstance(row, SkillRevision) and row.merged_from_id is not None
    if chosen.review_policy == ReviewPolicy.AUTOMATIC and not is_merge:
        return Outcome.PUBLISHED_WITHOUT_RISK
    return Outcome.PROPOSED


@transaction.atomic
def edit_skill(
    *,
    skill: Skill,
    base: SkillRevision,
    content: Content,
    author: User | None,
    may_decide: bool,
    reason: str = "",
) -> SkillRevision:
    """Propose `content` as the skill's next version, and publish it where `author` decides; return it.

    `base` is the revision that the author began with. Of an author who does not decide it waits for somebody
    who does, unless the organization publishes what carries no risk flag by itself; where it wants four eyes
    it waits in any case. Sent again by the same author, it returns what it made the first time.

    Raises `EditConflict` when the skill says something else by now, `NothingToDo` when it says so already,
    `ProposalConflict` when a proposal for it waits, which is to be edited then, and what `propose` and
    `approve` raise. Nothing is written then.
    """
    locked = Skill.objects.with_owner_of(skill).select_for_update(no_key=True).get(pk=skill.pk)
    if done := _written_before(locked.revisions.filter(base=base), content, author):
        return done
    current = locked.current_revision
    if current is not None and has_moved(skill=locked, base=base):
        raise EditConflict(
            f"“{locked.name}” was published anew as {locked.version} while you wrote.",
            base=base,
            theirs=current,
        )
    if content == Content.of(locked):
        raise NothingToDo(f"Nothing differs from version {locked.version}.")
    revision = propose(
        owner=Owner(organization=locked.organization, end_user=locked.end_user),
        content=content,
        skill=locked,
        action=RevisionAction.EDIT,
        author_kind=AuthorKind.HUMAN,
        author=author,
        experiences=[],
        rationale=reason or BY_HAND,
    )
    return _decided(revision, author, may_decide=may_decide, reason=reason)


@transaction.atomic
def edit_proposal(
    *,
    proposal: SkillRevision,
    content: Content,
    author: User | None,
    may_decide: bool,
    publish: bool = True,
    reason: str = "",
) -> SkillRevision:
    """Put `content` in the place of a proposal that waits, with its experiences; return the new revision.

    It is published at once where the author decides and asks for it (`publish`), or as in `edit_skill`. Where
    the skill was published anew since, the text is brought onto that, unless it changes the same part. Sent
    again by the same author, it returns what it made the first time.

    Raises `EditConflict` when somebody else put another in its place, or published it, `AlreadyDecided` when
    it was rejected, `NothingToDo` when it says so already, `ProposalConflict` when it does not fit what the
    skill says today, and what `propose` and `approve` raise.
    """
    skills = Skill.objects.with_owner_of(proposal).select_for_update(no_key=True)
    skill = skills.filter(pk=proposal.skill_id).first() if proposal.skill_id else None
    revisions = SkillRevision.objects.with_owner_of(proposal).select_for_update(no_key=True, of=("self",))
    locked = revisions.get(pk=proposal.pk)
    successors = SkillRevision.objects.with_owner_of(proposal).filter(supersedes=proposal)
    if done := _written_before(successors, content, author):
        return done
    _refuse_overtaken(locked)
    if content == Content.of(locked):
        raise NothingToDo("Nothing differs from what is proposed.")
    fitting = on_today(skill=skill, revision=locked, content=content)
    revision = propose(
        owner=Owner(organization=locked.organization, end_user=locked.end_user),
        content=fitting or content,
        target_revision=locked,
        on_new_base=fitting is not None,
        action=locked.action,
        author_kind=AuthorKind.HUMAN,
        author=author,
        experiences=[],
        rationale=reason or BY_HAND,
    )
    return _decided(revision, author, may_decide=may_decide, publish=publish, reason=reason)


def _written_before(
    revisions: QuerySet[SkillRevision], content: Content, author: User | None
) -> SkillRevision | None:
    """Return the one of these revisions that `author` wrote with this very text, where it stands."""
    standing = revisions.filter(
        Q(state=RevisionState.PROPOSED) | Q(pk=F("skill__current_revision")), author_kind=AuthorKind.HUMAN
    )
    mine = standing.filter(author=author).select_related("organization", "end_user", "skill")
    written = replace(content, filter_tags={})
    return next((row for row in mine if replace(Content.of(row), filter_tags={}) == written), None)


def latest_of(revision: SkillRevision) -> SkillRevision:
    """Return what took a revision's place, and that one's, to the last."""
    while revision.state == RevisionState.SUPERSEDED:
        found = SkillRevision.objects.with_owner_of(revision).filter(supersedes=revision).first()
        if found is None:
            break
        revision = found
    return revision


def _refuse_overtaken(proposal: SkillRevision) -> None:
    theirs = latest_of(proposal)
    match theirs.state:
        case RevisionState.REJECTED:
            raise AlreadyDecided(f"{theirs.pk} was rejected while you wrote.")
        case RevisionState.PUBLISHED:
            raise EditConflict(
                f"“{theirs.name}” was published as {theirs.version} while you wrote.",
                base=proposal,
                theirs=theirs,
            )
    if theirs.pk != proposal.pk:
        raise EditConflict("Somebody changed this proposal while you wrote.", base=proposal, theirs=theirs)


def _decided(
    revision: SkillRevision, author: User | None, *, may_decide: bool, publish: bool = True, reason: str
) -> SkillRevision:
    match outcome_of_edit(row=revision, may_decide=may_decide):
        case Outcome.PUBLISHED if publish:
            approve(revision=revision, decided_by=author, reason=reason or BY_HAND)
        case Outcome.PUBLISHED_WITHOUT_RISK if not revision.risk_flags:
            approve(revision=revision, reason=BY_POLICY)
    revision.refresh_from_db()
    return revision
