"""The curator: pending experiences in, proposals out, within a budget and past every gate.

One evolution: take what is pending, weightiest first; have each topic's experiences proposed from, outside
any transaction; write one operation after the other, each in its own transaction under the run's fence. A
crash between two of them leaves the rest pending and nothing half-written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from mirix.tenants.owners import Owner
from mirix.text import shorten
from skills.content import Content
from skills.evolution.budget import edit_budget
from skills.evolution.clusters import Cluster, clusters
from skills.evolution.dialogue import converse
from skills.evolution.gates import cumulative_refusals, refusals, support_refusals
from skills.evolution.lapsing import Claim, settle_outdated
from skills.evolution.library import Library, key_of
from skills.evolution.llm import LlmProposer, get_proposer
from skills.evolution.meaning import Meaning
from skills.evolution.merging import merge
from skills.evolution.near import Nearness
from skills.evolution.rejected import Return
from skills.evolution.restoring import asking_for_it_back
from skills.evolution.rules import budget_rule, limits, publishes_at_once
from skills.evolution.types import (
    EvolutionReport,
    ExperienceView,
    Operation,
    Proposer,
    Refusal,
    SkillView,
)
from skills.evolution.views import pending_view
from skills.evolution.writing import RefusedError, Writer
from skills.models import (
    AutoDreamRun,
    ExperienceType,
    Skill,
    SkillRevision,
    SkillStatus,
)
from skills.review.errors import ReviewError
from skills.selectors.experiences import pending_experiences
from skills.selectors.runs import refused_lately

MAX_EXPERIENCES = 50
MAX_POOL = 1_000
"""How many pending ones are looked at; those of topics that wait for more do not count towards the 50."""
SESSIONS_TO_ASK_AGAIN = 2
"""New sessions that must speak for what a person rejected, before it is proposed again."""


def evolve(
    *,
    owner: Owner,
    claim: Claim,
    proposer: Proposer | LlmProposer | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> EvolutionReport:
    """Turn the owner's pending experiences into proposals; return what was written and what was refused.

    The proposer is that of the settings, with the run's model. Not inside a transaction. Raises what
    `claim.hold` raises when the run is lost, and `skills.asking.Stopped` where it is to stop between two
    questions to a model; what was written until then stays.
    """
    if proposer is None:
        run = AutoDreamRun.objects.get(pk=claim.run_id)
        proposer = get_proposer(run.parameters.get("model", ""), limits())
    lapsed = settle_outdated(owner=owner, claim=claim)
    report = _Evolution(owner, claim, proposer, should_stop).run()
    return replace(report, refused=[*lapsed, *report.refused])


class _Evolution:
    """The state of one evolution."""

    def __init__(
        self,
        owner: Owner,
        claim: Claim,
        proposer: Proposer | LlmProposer,
        should_stop: Callable[[], bool],
    ) -> None:
        self.owner, self.claim, self.proposer, self.should_stop = owner, claim, proposer, should_stop
        self.limits = limits()
        self.writer = Writer(
            owner=owner, claim=claim, author_kind=proposer.name, publishes=publishes_at_once(owner)
        )
        self.meaning = Meaning(owner)
        self.library = Library(owner, self.meaning)
        self.views: dict[str, ExperienceView] = {}
        self.moved: dict[str, str] = {}
        """Where a pending new skill's text is by now: key before a write → key after it."""
        self.before: dict[str, Content | None] = {}
        """What the skills that are edited said when the run came to them."""
        self.proposed: dict[str, str] = {}
        self.published: dict[str, str] = {}
        self.consumed: list[str] = []
        self.refused: list[Refusal] = []
        self.budget = 0
        self.spent = 0

    def run(self) -> EvolutionReport:
        """Do all of it."""
        batch = self._batch()
        self.views = {view.id: view for cluster in batch for view in cluster.experiences}
        avoid = sum(view.experience_type == ExperienceType.WORTH_AVOIDING for view in self.views.values())
        self.budget = edit_budget(avoid=avoid, learn=len(self.views) - avoid, rule=budget_rule())
        if isinstance(self.proposer, LlmProposer):
            converse(self, self.proposer, batch if self.budget else [], self.should_stop)
        elif self.budget:
            self._write_all(self._operations(self.proposer, batch))
        if self.meaning.failure:
            reason = f"Near-duplicates were looked for by name and words alone: {self.meaning.failure}."
            self.refused.append(Refusal(reason=reason))
        return EvolutionReport(
            proposed=list(self.proposed.values()),
            published=list(self.published.values()),
            consumed=self.consumed,
            refused=self.refused,
            budget=self.budget,
        )

    def _write_all(self, operations: Iterator[Operation]) -> None:
        """Write operations as long as the budget lasts, and note what is refused and what waits."""
        waiting = 0
        for operation in operations:
            if not self.has_room(operation):
                waiting += 1
            elif refusal := self.attempt(operation):
                self.refused.append(
                    Refusal(
                        reason=str(refusal),
                        name=operation.content.name,
                        experience_ids=operation.experience_ids,
                    )
                )
        if waiting:
            operations_wait = "one operation waits" if waiting == 1 else f"{waiting} operations wait"
            self.refused.append(Refusal(reason=f"The budget of {self.budget} is used up; {operations_wait}."))

    def _batch(self) -> list[Cluster]:
        """Return the topics that are ready, with the weightiest 50 experiences of all of them.

        What the last run refused, and what a model left before, stands at the end of the line, so that it
        cannot hold up the rest for ever.
        """
        pool = [pending_view(experience) for experience in pending_experiences(owner=self.owner)[:MAX_POOL]]
        refused = refused_lately(owner=self.owner)
        pool.sort(key=lambda view: (bool(view.considered_by), view.id in refused))
        ready = [cluster for cluster in clusters(pool) if self._is_ready(cluster)]
        wanted = {view.id for cluster in ready for view in cluster.experiences}
        taken = {view.id for view in [view for view in pool if view.id in wanted][:MAX_EXPERIENCES]}
        cut = (
            replace(cluster, experiences=tuple(view for view in cluster.experiences if view.id in taken))
            for cluster in ready
        )
        return [cluster for cluster in cut if cluster.experiences]

    def _is_ready(self, cluster: Cluster) -> bool:
        """Return whether a topic is ready; for a model no text has to be looked up before it is asked."""
        asks = isinstance(self.proposer, LlmProposer)
        return self.proposer.is_ready(cluster.experiences, [] if asks else self.candidates(cluster))

    def _operations(self, proposer: Proposer, batch: Sequence[Cluster]) -> Iterator[Operation]:
        """Return all operations, the first of every topic before the second of any."""
        queues = [self._proposed_from(proposer, cluster) for cluster in batch]
        rounds = chain.from_iterable(zip_longest(*queues))
        return (operation for operation in rounds if operation is not None)

    def _proposed_from(self, proposer: Proposer, cluster: Cluster) -> list[Operation]:
        """Return a topic's operations; lessons that a person decided against do not hold up the others."""
        candidates = [self.library.with_support(view) for view in self.candidates(cluster)]
        operations = proposer.propose(cluster.experiences, candidates)
        if not any(self._out_of(operation) for operation in operations):
            return operations
        kept, notes = [], []
        for experience in cluster.experiences:
            alone = proposer.propose([experience], candidates)
            out = next(filter(None, map(self._out_of, alone)), "")
            if out:
                name = alone[0].content.name
                notes.append(Refusal(reason=out, name=name, experience_ids=(experience.id,)))
            else:
                kept.append(experience)
        if not kept or not notes:
            return operations
        self.refused += notes
        return proposer.propose(kept, candidates)

    def _out_of(self, operation: Operation) -> str:
        """Return why a line of an operation may not be written yet, by what a person decided."""
        if operation.action == "confirm":
            return ""
        found = self.library.lines_back(operation, list(self.views.values()))
        return next(filter(None, map(_still_out, found)), "")

    def candidates(self, cluster: Cluster) -> list[SkillView]:
        """Return the texts that a topic's lessons may belong to, as they stand now."""
        return self.library.candidates(cluster.topic, cluster.experiences)

    def has_room(self, operation: Operation | None = None) -> bool:
        """Return whether the budget takes another operation; a `confirm` costs nothing."""
        return self.spent < self.budget or (operation is not None and operation.action == "confirm")

    def attempt(self, operation: Operation) -> Exception | None:
        """Write one operation; return why not, a `ReviewError` where the texts moved meanwhile."""
        try:
            self._write(self._admitted(operation))
        except (RefusedError, ReviewError) as refusal:
            return refusal
        return None

    # Whether it may be written

    def _admitted(self, operation: Operation) -> Operation:
        """Return the operation as it is to be written: on the current text, past every gate."""
        unknown = [item for item in operation.experience_ids if item not in self.views]
        if unknown:
            raise RefusedError(
                f"It cites what this run did not hand out: {shorten(', '.join(unknown), 200)}."
            )
        if operation.target is not None:
            operation = replace(operation, target=self._current(operation.target))
        elif near := self.library.near(operation.content):
            operation = _turned_into_edit(operation, *near)
        operation = self._asking_for_it_back(operation)
        if not self.has_room(operation):  # it came as a `confirm`
            raise RefusedError(f"The budget of {self.budget} is used up.")
        self._pass_gates(operation)
        return operation

    def _asking_for_it_back(self, operation: Operation) -> Operation:
        """Return the operation, as a `restore` where it speaks for a skill that is out of use."""
        if operation.target is None or operation.target.status != SkillStatus.ARCHIVED:
            return operation
        cited = [self.views[item] for item in operation.experience_ids]
        supported = replace(operation, target=self.library.with_support(operation.target))
        return asking_for_it_back(supported, cited)

    def _current(self, target: SkillView) -> SkillView:
        """Return a target as it stands now; it must still be the text that the operation starts from."""
        key = key_of(target)
        while key in self.moved:
            key = self.moved[key]
        current = self.library.get(key)
        if current is None:
            raise RefusedError("The text it edits is no longer there.")
        if replace(current.content, filter_tags={}) != replace(target.content, filter_tags={}):
            raise RefusedError("The text it edits has changed, or an earlier part of the edit was refused.")
        return current

    def _pass_gates(self, operation: Operation) -> None:
        experiences = [self.views[item] for item in operation.experience_ids]
        target = operation.target
        if operation.action == "confirm" or _only_restores(operation):
            reasons = support_refusals(experiences)
        else:
            reasons = refusals(
                before=target.content if target else None,
                after=operation.content,
                experiences=experiences,
                limits=self.limits,
            )
        if reasons:
            raise RefusedError(" ".join(reasons))
        if operation.action == "confirm":
            return
        if reasons := cumulative_refusals(self._published(target), operation.content, self.limits):
            raise RefusedError(" ".join(reasons))
        if target and (other := self.library.newly_near(target, operation.content)):
            raise RefusedError(f"The edit would make it a near-duplicate of “{other.content.name}”.")
        for back in self.library.brought_back(operation, experiences):
            if reason := _still_out(back):
                raise RefusedError(reason)

    def _published(self, target: SkillView | None) -> Content | None:
        """Return what the skill of a target said before this run; a proposal waits against that."""
        if target is None or target.skill_id is None:
            return None
        return self.before.setdefault(target.skill_id, self.library.published(target.skill_id))

    def _write(self, operation: Operation) -> None:
        """Write one operation; the library is read anew behind it."""
        written = self.writer.write(operation)
        self.consumed += operation.experience_ids
        self.spent += operation.action != "confirm"
        if written is not None:
            self._remember(operation.target, written.revision, written.skill)
            self.library = Library(self.owner, self.meaning)

    def _remember(self, target: SkillView | None, revision: SkillRevision, skill: Skill | None) -> None:
        """Note where the text is by now, and which revision waits or was published last."""
        skill_id = skill.pk if skill else revision.skill_id
        key = skill_id or revision.pk
        if target is not None and key_of(target) != key:
            self.moved[key_of(target)] = key
            self.proposed.pop(key_of(target), None)
        self.proposed.pop(key, None)
        self.published.pop(key, None)
        (self.published if skill else self.proposed)[key] = revision.pk


def _still_out(back: Return) -> str:
    """Return why something that a person decided against may not come back yet; "" where it may."""
    if back.new_voices >= SESSIONS_TO_ASK_AGAIN:
        return ""
    return f"{back.reason}, and fewer than {SESSIONS_TO_ASK_AGAIN} new sessions speak for it."


def _only_restores(operation: Operation) -> bool:
    target = operation.target
    return operation.action == "restore" and target is not None and operation.content == target.content


def _turned_into_edit(operation: Operation, view: SkillView, near: Nearness) -> Operation:
    """Return what a create too near an existing text becomes: an edit of it, or mere support for it."""
    merged = merge(view.content, operation.content)
    if merged == view.content:
        return replace(operation, action="confirm", content=view.content, target=view)
    why = f"It came as a new skill, “{operation.content.name}”, which is near to this one by {near.measure}"
    rationale = f"{operation.rationale} {why} ({near.score:.2f})."
    return replace(operation, action="edit", content=merged, target=view, rationale=rationale)
