"""Writing one operation: what was decided becomes a revision, its support used up, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from mirix.tenants.owners import Owner
from skills.content import Content
from skills.distillation.wording import listing
from skills.evolution.gates import rewritten
from skills.evolution.lapsing import Claim
from skills.evolution.rules import limits
from skills.evolution.types import Operation, SkillView
from skills.models import (
    AuthorKind,
    AutoDreamRun,
    ExperienceStatus,
    RevisionAction,
    RevisionState,
    Skill,
    SkillExperience,
    SkillRevision,
    SkillStatus,
)
from skills.review.errors import ProposalConflict, ReviewError
from skills.review.proposals import flags_today, propose
from skills.review.publishing import approve
from skills.review.support import sessions_behind
from skills.review.tags import shared_tags


class RefusedError(Exception):
    """An operation must not be written; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an operation left: a revision, and the skill where it was published at once."""

    revision: SkillRevision
    skill: Skill | None


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes the operations of one run."""

    owner: Owner
    claim: Claim
    author_kind: str
    """Who proposes, a value of `AuthorKind`."""
    publishes: bool
    """Whether the policy lets unflagged proposals through."""

    def write(self, operation: Operation) -> Written | None:
        """Write an operation that passed every gate; None where it became support of a text as it stands.

        Support may be what a proposal lacked to be published by policy: then that is what was written.

        Raises `RefusedError` or a `ReviewError` where the texts or the experiences moved meanwhile, and
        whatever `claim.hold` raises when the run is lost; then nothing was written.
        """
        with transaction.atomic():
            run = self.claim.hold()
            experiences = self._still_pending(operation.experience_ids)
            if operation.action != "confirm":
                revision = self._propose(operation, experiences, run)
                return Written(revision=revision, skill=self._publish(revision))
            supported = self._confirm(operation, experiences, run)
            skill = self._publish(supported) if supported else None
            if supported is None or (skill is None and supported.pk == _waiting(operation)):
                return None
            return Written(revision=supported, skill=skill)

    def _still_pending(self, ids: Sequence[str]) -> list[SkillExperience]:
        """Return the cited experiences; a person may have set one aside since it was read."""
        found = list(
            SkillExperience.objects.for_owner(self.owner)
            .filter(pk__in=ids, status=ExperienceStatus.PENDING, quarantined=False)
            .select_related("session")
        )
        if len(found) < len(set(ids)):
            raise RefusedError("Some of its experiences were used or set aside meanwhile.")
        return found

    def _propose(
        self, operation: Operation, experiences: Sequence[SkillExperience], run: AutoDreamRun
    ) -> SkillRevision:
        target = operation.target
        skill = Skill.objects.get(pk=target.skill_id) if target and target.skill_id else None
        open_revision = (
            SkillRevision.objects.get(pk=target.revision_id) if target and target.revision_id else None
        )
        if open_revision is not None:
            _refuse_anothers_words(open_revision)
        elif skill and target:
            _refuse_changed(skill, target)
        return propose(
            owner=self.owner,
            content=operation.content,
            skill=skill,
            target_revision=open_revision,
            action=_action(operation, skill, open_revision),
            author_kind=self.author_kind,
            experiences=experiences,
            rationale=_rationale(operation, experiences, open_revision)
            + _rewriting(skill, operation.content),
            run=run,
        )

    def _confirm(
        self, operation: Operation, experiences: Sequence[SkillExperience], run: AutoDreamRun
    ) -> SkillRevision | None:
        """Make experiences support of the text that says them already; return what is to be published for it.

        Tags are what all support shares: where a session has others, the text is proposed anew with fewer.
        """
        target = operation.target
        assert target is not None
        tags = shared_tags([target.content.filter_tags, *(item.filter_tags for item in experiences)])
        if tags != target.content.filter_tags:
            return self._propose(replace(operation, content=target.content), experiences, run)
        skill = self._locked_skill(target)
        revisions = SkillRevision.objects.for_owner(self.owner).select_for_update(no_key=True, of=("self",))
        if target.revision_id:
            revision = revisions.filter(pk=target.revision_id, state=RevisionState.PROPOSED).first()
        else:
            assert skill is not None
            _refuse_changed(skill, target)
            revision = revisions.filter(pk=skill.current_revision_id).first()
        if revision is None:
            raise RefusedError("The text that says so already is no longer there.")
        if target.revision_id:
            _refuse_anothers_words(revision)
        revision.experiences.add(*experiences)
        SkillExperience.objects.filter(pk__in=[item.pk for item in experiences]).update(
            status=ExperienceStatus.CONSUMED
        )
        may_go = self.publishes and target.revision_id is not None
        return revision if may_go and not flags_today(revision) else None

    def _locked_skill(self, target: SkillView) -> Skill | None:
        """Lock the skill of a text, before any revision of it, as everybody does who may publish one."""
        if target.skill_id is None:
            return None
        return Skill.objects.for_owner(self.owner).select_for_update(no_key=True).get(pk=target.skill_id)

    def _publish(self, revision: SkillRevision) -> Skill | None:
        """Publish at once where the policy lets unflagged proposals through; else leave it waiting."""
        dormant = revision.skill is not None and revision.skill.status != SkillStatus.ACTIVE
        if not self.publishes or revision.risk_flags or revision.merged_from_id or dormant:
            return None
        try:
            return approve(
                revision=revision,
                kind=self.author_kind,
                reason="No risk flags: published by the organization's policy.",
            )
        except ReviewError:
            return None  # It waits for a person, who is told why by the same rule.


def _waiting(operation: Operation) -> str | None:
    """Return the open proposal that an operation starts from."""
    return operation.target.revision_id if operation.target else None


def _refuse_changed(skill: Skill, target: SkillView) -> None:
    """Raise where a skill says something else than when the run read it: somebody published meanwhile."""
    if Content.of(skill) != target.content:
        raise RefusedError(f"“{skill.name}” was published anew as {skill.version} meanwhile.")


def _refuse_anothers_words(waiting: SkillRevision) -> None:
    """Raise where a person's own text waits: a run adds nothing to it, and nobody decides on both at once.

    Else who wrote it could approve it as the run's, where the organization wants four eyes.
    """
    if waiting.author_kind == AuthorKind.HUMAN:
        raise ProposalConflict(f"{waiting.pk} waits, in a person's own words: it is decided first.")


def _action(operation: Operation, skill: Skill | None, amended: SkillRevision | None) -> str:
    """Return what the revision does; what amends one that takes its skill into use again does that too."""
    if operation.action == "restore" or (amended and amended.action == RevisionAction.RESTORE):
        return RevisionAction.RESTORE
    return RevisionAction.EDIT if skill else RevisionAction.CREATE


def _rewriting(skill: Skill | None, content: Content) -> str:
    """Return how much of a skill a proposal rewrites, where that is more than one edit may."""
    found = rewritten(Content.of(skill) if skill else None, content, limits())
    shares = listing(f"{share:.0%} of the {field}" for field, share in found.items())
    return f" In all it rewrites {shares}." if found else ""


def _rationale(operation: Operation, added: Sequence[SkillExperience], amended: SkillRevision | None) -> str:
    """Return why a revision is proposed; for one that carries on an open one, what supports it in all."""
    if amended is None:
        asks = "Asks for the skill back, which is archived. " if operation.action == "restore" else ""
        return f"{asks}{operation.rationale}"
    behind = [*amended.experiences.select_related("session"), *added]
    origins, lessons = sessions_behind(behind), len({row.pk for row in behind})
    origin = "1 session" if origins == 1 else f"{origins} sessions"
    support = f"{lessons} lessons from {origin} support this proposal in all."
    return f"{support} Added now: {operation.rationale}"
