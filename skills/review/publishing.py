"""Deciding proposals: each is approved or rejected once, by whoever comes first."""

from __future__ import annotations

from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.models import (
    AuthorKind,
    Decision,
    ExperienceStatus,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.bases import has_moved, on_today
from skills.review.errors import (
    AlreadyDecided,
    InvalidContent,
)
from skills.review.history import archive
from skills.review.policy import require_decider, require_policy
from skills.review.proposals import propose
from skills.review.reasons import require_reason
from skills.review.rebasing import rebased
from skills.review.refusals import is_source_gone, moved_on, refuse_unfit_merge, refuse_unverified
from skills.review.validation import content_errors
from skills.review.versions import record_decision, write_skill
from skills.search.index import index_skill


@transaction.atomic
def approve(
    *,
    revision: SkillRevision,
    decided_by: User | None = None,
    kind: str = AuthorKind.HUMAN,
    reason: str = "",
) -> Skill:
    """Publish a proposal: write the skill, its version, the decision and the search index; return the skill.

    A create publishes 0.1.0, everything else raises the patch. Where the skill was published anew since the
    proposal was made, a person's approval publishes its change to what the skill says today, as a revision
    that supersedes the proposal. A merge archives the skill that it takes in, and what waits for that one
    lapses. Approving what is approved already returns the skill and writes nothing.

    Raises `MayNotDecide` for somebody who does not decide in the organization,
    `AlreadyDecided` when the revision was rejected or superseded, `BaseConflict` when the skill was
    published anew and the change touches what changed since, or nobody is there to have read it, or when
    the skill that it takes in says something else by now, or the one that takes it in is out of use,
    `UnverifiedSupport` when no verified evidence stands behind it, `AgainstPolicy` when the organization
    wants more sessions behind it or somebody else to decide, and `InvalidContent` when it breaks a rule or
    its name is taken.
    """
    require_decider(organization=revision.organization, decided_by=decided_by)
    skill, locked = _lock(revision)
    published = locked if locked.state == RevisionState.PUBLISHED else _published_on_a_later_base(locked)
    if published is not None and published.skill is not None:
        return published.skill
    _refuse_decided(locked)
    refuse_unfit_merge(revision=locked, into=skill)
    if has_moved(skill=skill, base=locked.base):
        locked = _on_the_base_of_today(locked, skill, kind)
    refuse_unverified(revision=locked, support=locked.experiences.all())
    require_policy(revision=locked, decided_by=decided_by)
    content = Content.of(locked)
    if errors := content_errors(content):
        raise InvalidContent(errors)
    skill = write_skill(locked, skill, content)
    locked.skill = skill
    locked.version = skill.version
    _close(locked, RevisionState.PUBLISHED)
    record_decision(locked, Decision.APPROVE, decided_by, kind, reason)
    index_skill(skill)
    _retire_source(locked, skill, decided_by)
    return skill


@transaction.atomic
def reject(
    *,
    revision: SkillRevision,
    decided_by: User | None = None,
    kind: str = AuthorKind.HUMAN,
    reason: str,
) -> SkillRevision:
    """Turn a proposal down and return it; its experiences stay consumed, so that it does not come back.

    One that does not fit what its skill says today could not have been approved: it lapses instead, as
    `superseded`, and what supports nothing else is pending again, for the next run to look at.

    Rejecting what is rejected already, or lapsed that way, writes nothing. Raises `MayNotDecide` as
    `approve` does, `ReasonRequired` for a blank reason and `AlreadyDecided` when the revision was approved
    or superseded.
    """
    require_decider(organization=revision.organization, decided_by=decided_by)
    require_reason(reason, "a rejection")
    skill, locked = _lock(revision)
    if _was_turned_down(locked):
        return locked
    _refuse_decided(locked)
    if is_source_gone(locked) or on_today(skill=skill, revision=locked) is None:
        _let_lapse(locked)
    else:
        _close(locked, RevisionState.REJECTED)
    record_decision(locked, Decision.REJECT, decided_by, kind, reason)
    return locked


@transaction.atomic
def bring_up_to_date(*, revision: SkillRevision) -> SkillRevision | None:
    """Propose a waiting change anew, to what its skill says by now; return that proposal.

    None, and nothing is written, where it still applies as it is, was decided, or does not fit any more.
    Raises what `propose` raises.
    """
    skill, locked = _lock(revision)
    is_stale = locked.state == RevisionState.PROPOSED and has_moved(skill=skill, base=locked.base)
    content = on_today(skill=skill, revision=locked) if is_stale else None
    if content is None or is_source_gone(locked):
        return None
    return _proposed_anew(locked, skill, content)


@transaction.atomic
def lapse(*, revision: SkillRevision) -> int | None:
    """Close a proposal whose skill says something else by now than the text it was made against.

    What supports nothing else is pending again; return how many experiences that are, None where the
    proposal still applies or was decided: then nothing is written.
    """
    skill, locked = _lock(revision)
    if locked.state != RevisionState.PROPOSED or not has_moved(skill=skill, base=locked.base):
        return None
    return _let_lapse(locked)


def _let_lapse(revision: SkillRevision) -> int:
    given_back = _give_back(revision)
    _close(revision, RevisionState.SUPERSEDED)
    return given_back


def _give_back(revision: SkillRevision) -> int:
    """Make the experiences pending again that stand behind no version and no other proposal; count them."""
    counted = SkillRevision.objects.with_owner_of(revision).exclude(pk=revision.pk)
    counted = counted.filter(state__in=(RevisionState.PUBLISHED, RevisionState.PROPOSED))
    experiences = SkillExperience.objects.with_owner_of(revision)
    own = experiences.filter(revisions=revision)
    own = own.exclude(pk__in=experiences.filter(revisions__in=counted).values("pk"))
    ids = list(own.order_by("pk").values_list("pk", flat=True))
    # Whoever is to propose from them is to be asked anew.
    SkillExperience.objects.with_owner_of(revision).filter(pk__in=ids).update(
        status=ExperienceStatus.PENDING, considered_by=""
    )
    return len(ids)


def _lock(revision: SkillRevision) -> tuple[Skill | None, SkillRevision]:
    """Lock the skill, then the revision: the order in which every writer takes them.

    Of a merge both skills are locked, by their keys, as everybody does who locks two. A proposal never
    changes its skill, so the id may be read before the lock; only publishing a new one sets it, and then the
    revision is found decided.
    """
    skill = None
    if revision.skill_id:
        source_id = revision.merged_from.skill_id if revision.merged_from else None
        skills = Skill.objects.with_owner_of(revision).select_for_update(no_key=True).order_by("pk")
        locks = {row.pk: row for row in skills.filter(pk__in=[revision.skill_id, source_id])}
        if revision.skill_id not in locks:
            raise Skill.DoesNotExist
        skill = locks[revision.skill_id]
    revisions = SkillRevision.objects.with_owner_of(revision).select_for_update(no_key=True, of=("self",))
    locked = revisions.get(pk=revision.pk)
    return skill, locked


def _was_turned_down(revision: SkillRevision) -> bool:
    """Return whether somebody rejected a revision, though it may have lapsed for that."""
    if revision.state == RevisionState.SUPERSEDED:
        return revision.decisions.filter(decision=Decision.REJECT).exists()
    return revision.state == RevisionState.REJECTED


def _refuse_decided(revision: SkillRevision) -> None:
    match revision.state:
        case RevisionState.PROPOSED:
            return
        case RevisionState.SUPERSEDED:
            successor = SkillRevision.objects.with_owner_of(revision).filter(supersedes=revision).first()
            if successor is None:
                raise AlreadyDecided(f"{revision.pk} lapsed: its skill says something else by now.")
            raise AlreadyDecided(
                f"{revision.pk} was superseded by {successor.pk}; decide the latest proposal."
            )
        case _:
            day = f" on {revision.decided_at:%Y-%m-%d %H:%M} UTC" if revision.decided_at else ""
            raise AlreadyDecided(f"{revision.pk} was {revision.state}{day}.")


def _on_the_base_of_today(revision: SkillRevision, skill: Skill | None, kind: str) -> SkillRevision:
    """Propose a change anew, to what its skill says today; what the change rests on stays with it."""
    content = on_today(skill=skill, revision=revision)
    if content is not None and kind == AuthorKind.HUMAN:
        return _proposed_anew(revision, skill, content)
    raise moved_on(revision=revision, skill=skill)


def _proposed_anew(revision: SkillRevision, skill: Skill | None, content: Content) -> SkillRevision:
    """Put `content`, which is the change on a later base, in a proposal's place; all else stays as it was."""
    return propose(
        owner=Owner(organization=revision.organization, end_user=revision.end_user),
        content=content,
        skill=skill,
        target_revision=revision,
        action=revision.action,
        author_kind=revision.author_kind,
        experiences=[],
        rationale=revision.rationale,
        run=revision.run,
        author=revision.author,
        source=revision.source,
        on_new_base=True,
    )


def _published_on_a_later_base(revision: SkillRevision) -> SkillRevision | None:
    """Return the version that says what a superseded proposal wanted, brought onto a later base."""
    if revision.state != RevisionState.SUPERSEDED or revision.base is None:
        return None
    successors = SkillRevision.objects.with_owner_of(revision).filter(
        supersedes=revision, state=RevisionState.PUBLISHED
    )
    found = successors.exclude(base__content_hash=revision.base.content_hash).first()
    if found is None or found.base is None:
        return None
    base, theirs = Content.of(revision.base), Content.of(found.base)
    wanted = rebased(base=base, theirs=theirs, mine=Content.of(revision))
    return found if wanted and _untagged(wanted) == _untagged(Content.of(found)) else None


def _untagged(content: Content) -> Content:
    return replace(content, filter_tags={})


def _retire_source(revision: SkillRevision, into: Skill, decided_by: User | None) -> None:
    """Archive the skill that a merge has taken in; what waits for it lapses."""
    source = revision.merged_from.skill if revision.merged_from else None
    if source is None or source.status == SkillStatus.ARCHIVED:
        return
    reason = f"Merged into “{into.name}” {into.version}."
    revisions = SkillRevision.objects.with_owner_of(revision).select_for_update(no_key=True, of=("self",))
    for waiting in revisions.filter(skill=source, state=RevisionState.PROPOSED):
        _let_lapse(waiting)
        record_decision(waiting, Decision.REJECT, decided_by, AuthorKind.HUMAN, reason)
    archive(skill=source, decided_by=decided_by, reason=reason)


def _close(revision: SkillRevision, state: RevisionState) -> None:
    revision.state = state
    revision.decided_at = timezone.now()
    revision.save(update_fields=["skill", "version", "state", "decided_at"])
